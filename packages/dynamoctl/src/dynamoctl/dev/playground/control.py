"""Start, restart and stop the operator of a playground.

All state is in the instance's files, so a command may be killed half way and the next one continues.
"""

import json
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster.instance import Instance
from devcluster.ports import free_ports
from devcluster.processes import ProcessError, first_ended, stop
from devcluster.progress import ProgressReporter
from dynamo_graphs.api.crd import custom_resource_definitions
from dynamoctl.dev.playground import installation
from dynamoctl.dev.playground.installation import HEALTH_FLAG, Ports
from dynamoctl.dev.playground.process import ADMINISTRATOR
from dynamoctl.installation.manifests import NAMESPACE
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object

_READY_SECONDS = 60.0
_BETWEEN_PROBES_SECONDS = 0.1
_TOKEN_LIFE = "8760h"  # noqa: S105  # a year, because nothing renews it
_PROGRAM = "dynamoctl.dev.playground.process"


@dataclass(frozen=True, slots=True)
class Playground:
    """An instance with the operator."""

    instance: Instance

    @property
    def log(self) -> Path:
        """The operator's output, over all restarts."""
        return self.instance.companion.log

    def up(
        self, progress: ProgressReporter, *, nodes: int | None = None, crds: Sequence[str] = ()
    ) -> None:
        """Start the control plane and the operator unless they run; return when the operator is ready.

        Raises:
            OperatorError: something does not start.
        """
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "definitions.json")
            file.write_text(_list(custom_resource_definitions()), encoding="utf-8")
            self.instance.up(nodes=nodes, crds=crds, crd_files=[file], progress=progress)
        self.start(progress)

    def start(self, progress: ProgressReporter) -> None:
        """Install and start the operator unless it runs; return when it is ready.

        Raises:
            ProcessError: it ended, or is not ready in time.
        """
        if self.instance.status().version is None:
            name = self.instance.name
            raise ConfigError(name, f"is not running; start it with: dynamoctl dev up {name}")
        with self.instance.installing(progress):
            health = self._health_port()
            if health is None:
                progress.step("starting the operator")
                health = self._launch(progress)
            self._wait(health)

    def _launch(self, progress: ProgressReporter) -> int:
        """Install and start the operator; the port of its health probes."""
        ports = Ports(*free_ports(3, reserved=self.instance.ports))
        self._install(ports)
        token = (NAMESPACE, installation.account())
        kubeconfig = self.instance.service_account_kubeconfig(*token, duration=_TOKEN_LIFE)
        variables = {ADMINISTRATOR: str(self.instance.kubeconfig), "KUBECONFIG": str(kubeconfig)}
        command = (sys.executable, "-m", _PROGRAM, "run", *installation.flags(ports))
        self.instance.run_companion(command, variables, progress=progress)
        return ports.health

    def _health_port(self) -> int | None:
        """The health port of the running operator; None if it does not run."""
        pid = self.instance.companion.pid()
        if pid is None:
            return None
        try:
            command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
        except FileNotFoundError:  # it ended just now
            return None
        flags = [flag for flag in command if flag.startswith(HEALTH_FLAG)]
        return int(flags[-1].rpartition(":")[2]) if flags else None

    def restart(self, progress: ProgressReporter) -> None:
        """Stop the operator gracefully, and start it with the current code.

        Raises:
            ProcessError: it does not end, or does not start.
        """
        self.stop()
        self.start(progress)

    def stop(self) -> None:
        """Stop the operator; the control plane stays.

        Raises:
            ProcessError: it does not end.
        """
        stop([self.instance.companion])

    def _install(self, ports: Ports) -> None:
        objects = [*installation.objects(ports), *installation.profiling_policy()]
        self.instance.kubectl(
            *("apply", "--server-side", "--force-conflicts", "--filename=-"),
            stdin=_list(objects),
        )

    def _wait(self, health_port: int) -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while not _is_ready(health_port):
            if first_ended([self.instance.companion], within_seconds=_BETWEEN_PROBES_SECONDS):
                lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
                last = lines[-1] if lines else "no output"
                raise ProcessError(f"the operator ended: {last}; log: {self.log}")
            if time.monotonic() > deadline:
                text = f"the operator is not ready after {_READY_SECONDS:g} s; log: {self.log}"
                raise ProcessError(text)


def _list(items: Iterable[Object]) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items]})


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1) as answer:
            return bool(answer.status == 200)  # noqa: PLR2004
    except (urllib.error.URLError, OSError):
        return False
