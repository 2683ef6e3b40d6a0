"""Prometheus and promtool, for who works on dashboards and alerts; built when first asked for.

Without service discovery, which is most of what Prometheus is made of: what is scraped here is named by
its address. A Prometheus keeps what it has read in a folder, and ends when its user is done.
"""

import json
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from devcluster.ports import free_ports
from devcluster.processes import completed
from devcluster.programs.build import Pinned, build
from devcluster.progress import SILENT, ProgressReporter
from kube_runtime.kind import Object

PROMETHEUS = Pinned(
    *("gomodule-prometheus", "Prometheus", "github.com/prometheus/prometheus"),
    tags=("remove_all_sd",),
)
_PAUSE_SECONDS = 0.1
_STOP_SECONDS = 10.0


class PrometheusError(Exception):
    """Prometheus or promtool said no; the text is its own."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running Prometheus."""

    address: str

    def query(self, expression: str) -> list[Object]:
        """The series that an expression gives now.

        Raises: PrometheusError.
        """
        return cast("list[Object]", self.get("query", query=expression)["result"])

    def get(self, path: str, **parameters: str) -> Any:
        """What its API says to a question.

        Raises: PrometheusError.
        """
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(  # noqa: S310  # our own address
                f"{self.address}/api/v1/{path}?{query}", timeout=_STOP_SECONDS
            ) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise PrometheusError(error.read().decode()) from error
        except OSError as error:
            raise PrometheusError(str(error)) from error

    def until(self, holds: Callable[["Prometheus"], object], *, within_seconds: float) -> Any:
        """The first true answer of `holds`.

        Raises: TimeoutError.
        """
        deadline = time.monotonic() + within_seconds
        while True:
            try:
                if answer := holds(self):
                    return answer
            except PrometheusError:
                if time.monotonic() > deadline:
                    raise
            if time.monotonic() > deadline:
                raise TimeoutError(f"not within {within_seconds:.0f} s")
            time.sleep(_PAUSE_SECONDS)


def promtool(*arguments: str | Path) -> str:
    """What promtool prints.

    Raises: PrometheusError; ConfigError if it cannot be built.
    """
    program = build(SILENT, PROMETHEUS) / "promtool"
    done = completed([program, *arguments])
    if done.returncode:
        raise PrometheusError((done.stdout + done.stderr).strip())
    return done.stdout


@contextmanager
def running(
    configuration: Path, folder: Path, progress: ProgressReporter = SILENT
) -> Iterator[Prometheus]:
    """A Prometheus with this configuration, on a free port of this machine; its data is in `folder`.

    Raises: ConfigError if it cannot be built; PrometheusError if it does not start.
    """
    program = build(progress, PROMETHEUS) / "prometheus"
    [port] = free_ports(1)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # the program that we built
            [
                program,
                f"--config.file={configuration}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
    prometheus = Prometheus(f"http://127.0.0.1:{port}")
    try:
        _await_start(process, prometheus, folder / "log")
        yield prometheus
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _await_start(process: subprocess.Popen[bytes], prometheus: Prometheus, log: Path) -> None:
    def answers(which: Prometheus) -> object:
        if process.poll() is not None:
            return "ended"
        return which.get("status/runtimeinfo")

    try:
        answer = prometheus.until(answers, within_seconds=_STOP_SECONDS)
    except (PrometheusError, TimeoutError) as error:
        raise PrometheusError(log.read_text()) from error
    if answer == "ended":
        raise PrometheusError(log.read_text())
