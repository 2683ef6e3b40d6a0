"""What a start does on a machine that is busy: kubectl needs seconds for requests that take milliseconds."""

from pathlib import Path

from devcluster.layout import Layout, Plan
from devcluster.programs import Binaries
from devcluster.progress import SILENT, ProgressReporter
from devcluster.startup import Startup

SLOW_KUBECTL = """#!/bin/sh
for each; do case "$each" in --timeout=*s) seconds=${each#--timeout=}; esac; done
test "${seconds%s}" -ge 10
"""


class SlowStartup(Startup):
    @staticmethod
    def find_programs(_: ProgressReporter) -> Binaries:
        return {}

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return ()


def test_a_wait_ends_however_slow_kubectl_is(tmp_path: Path) -> None:
    startup = SlowStartup(
        Layout(tmp_path), Plan(server_port=1, etcd_port=2, etcd_peer_port=3, nodes=0), SILENT
    )
    (program := tmp_path / "kubectl").write_text(SLOW_KUBECTL)
    program.chmod(0o700)
    startup.binaries = {"kubectl": program}
    startup.wait("--for=condition=Ready", "node/gpu-0")
