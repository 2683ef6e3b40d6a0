"""Prometheus and promtool, for work on dashboards and alerts; built on first use.

They are built without service discovery, which is most of Prometheus, because targets here are static
addresses.
"""

import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from devcluster.layout import free_ports
from devcluster.processes import completed
from devcluster.programs import Pinned, build
from devcluster.progress import SILENT, ProgressReporter
from kube_runtime.types.meta import Object
from realnode.servers import server_running

PROMETHEUS = Pinned(
    Path(__file__).with_name("gomodule-prometheus"),
    "Prometheus",
    "github.com/prometheus/prometheus",
    tags=("remove_all_sd",),
)
_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 10.0


class PrometheusError(Exception):
    """Prometheus or promtool failed; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    address: str

    def query(self, expression: str) -> list[Object]:
        """Evaluate an expression now and return its series.

        Raises: PrometheusError.
        """
        return cast("list[Object]", self.get("query", query=expression)["result"])

    def get(self, path: str, **parameters: str) -> Any:
        """Send a request to its API and return the data.

        Raises: PrometheusError.
        """
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(  # noqa: S310  # our own address
                f"{self.address}/api/v1/{path}?{query}", timeout=_ANSWER_SECONDS
            ) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise PrometheusError(error.read().decode()) from error
        except OSError as error:
            raise PrometheusError(str(error)) from error

    def until(self, condition: Callable[["Prometheus"], object], *, within_seconds: float) -> Any:
        """Poll until `condition` returns something true, and return that.

        Raises: TimeoutError.
        """
        deadline = time.monotonic() + within_seconds
        while True:
            try:
                if answer := condition(self):
                    return answer
            except PrometheusError:
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within_seconds:.0f} s")
            time.sleep(_PAUSE_SECONDS)


def promtool(*arguments: str | Path) -> str:
    """Run promtool and return what it prints.

    Raises: PrometheusError; ConfigError if it cannot be built.
    """
    program = build(SILENT, PROMETHEUS) / "promtool"
    done = completed([program, *arguments])
    if done.returncode:
        raise PrometheusError((done.stdout + done.stderr).strip())
    return done.stdout


@contextmanager
def running(configuration: Path, folder: Path, progress: ProgressReporter = SILENT) -> Iterator[Prometheus]:
    """Run Prometheus with this configuration on a free port of this machine, with its data in `folder`.

    Raises: ConfigError if it cannot be built; ProcessError if it does not start.
    """
    program = build(progress, PROMETHEUS) / "prometheus"
    [port] = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    command: list[str | Path] = [
        program,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with server_running(command, folder / "log", "Server is ready to receive web requests"):
        yield Prometheus(f"http://127.0.0.1:{port}")
