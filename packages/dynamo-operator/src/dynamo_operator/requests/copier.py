"""`dynamo-operator copy-output`: save a profiler's output folder as a ConfigMap.

The second container of a profiling Job runs it in the operator's own image, with the Job's ServiceAccount.
It does the same as `requests/scripts/copy_profiling_output.sh` in images with kubectl. Both write the
digests of the results to the termination message. Only the kubelet can put that into the pod's status, so by
the digests the operator recognises the results of its own Job (`dynamo_operator/requests/decide.py`).
"""

import asyncio
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from dynamo_operator import user_agent
from dynamo_operator.requests.api import MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE, Output
from kube_runtime.client.client import Client
from kube_runtime.client.connect import connect
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.types.kinds import ContainerStatus
from kube_runtime.types.meta import Key, Kind, Object, Resource, Struct, from_json

_MOST: Final = 1_048_576
"""Most bytes of a ConfigMap."""
_MANAGER: Final = "output-copier"


def copy_output(
    namespace: str,
    configmap: str,
    metadata: str,
    folder: Path,
    container: str,
    fresh: str = "",
    results: str = RESULTS_FILE,
) -> None:
    """Save a profiler's output as a ConfigMap. Profiling Jobs run this.

    Parameters
    ----------
    namespace
        Namespace of the pod and of the ConfigMap.
    configmap
        Name of the ConfigMap.
    metadata
        JSON with the labels and owner references of the ConfigMap.
    folder
        Folder that the profiler writes to.
    container
        Name of the profiler's container in this pod.
    fresh
        `fresh` if the folder outlives the pod: older files do not count.
    results
        File that the profiler must have written.
    """
    try:
        described = from_json(metadata, dict[str, Object])["metadata"]
    except (msgspec.MsgspecError, KeyError) as error:
        raise ConfigError("METADATA", f"expected JSON with metadata: {error}") from error
    output = Key(namespace, configmap)
    sys.exit(asyncio.run(_copied(output, described, folder, container, results, is_fresh=bool(fresh))))


class _PodStatus(Struct):
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()


class _OwnPod(Resource):
    KIND = Kind("", "v1", "Pod", "pods")

    status: _PodStatus = _PodStatus()


@dataclass(slots=True)
class _Copier:
    """One run. `began` is the start of the pod in seconds since 1970; 0 accepts files of any age."""

    client: Client
    output: Key
    metadata: Object
    folder: Path
    container: str
    results: str
    pod: Key
    pause_seconds: float
    tries: int
    began: float = 0.0
    reported: str = ""

    async def run(self, *, is_fresh: bool) -> int:
        """Copy the output when the profiler has ended; return the exit code."""
        if is_fresh and not await self._read_start_time():
            return _failed(f"the API server does not report when pod {self.pod.name} started")
        code = await self._profiler_code()
        if code is None:
            seconds = f"{self.tries * self.pause_seconds:g}"
            return _failed(
                f"no answer from the API server for {seconds} seconds: cannot see whether the profiler runs"
            )
        await self._report_progress()
        if code:
            _say(f"the profiler ended with exit code {code}: nothing is copied")
            return 0  # the profiler failed, and its container reports that
        files = dict(self._files((self.results, MOCKED_RESULTS_FILE, STATUS_FILE)))
        if self.results not in files:
            path = self.folder / self.results
            return _failed(f"the profiler ended with exit code 0 but did not write {path}")
        if (size := sum(map(len, files.values()))) > _MOST:
            text = f"the results have {size} bytes; a ConfigMap holds {_MOST}"
            return _failed(f"{text}: nothing is copied")
        return await self._save(files)

    async def _save(self, files: Mapping[str, bytes]) -> int:
        for _ in range(self.tries):
            try:
                await self._write(files)
            except UnicodeDecodeError as error:
                return _failed(f"the results are not UTF-8: {error}")
            except OperatorError as error:
                _say(str(error))
                await asyncio.sleep(self.pause_seconds)
            else:
                _write_digests(files)
                _say(f"saved the results in ConfigMap {self.output.name}")
                return 0
        return _failed(f"failed to write ConfigMap {self.output.name}; see above")

    async def _read_start_time(self) -> bool:
        for _ in range(self.tries):
            pod = await self._own_pod()
            if pod is not None and pod.status.start_time:
                self.began = datetime.fromisoformat(pod.status.start_time).timestamp()
                return True
            await asyncio.sleep(self.pause_seconds)
        return False

    async def _profiler_code(self) -> int | None:
        """Wait for the profiler, and return its exit code; None if the API server does not answer."""
        failures = 0
        while failures < self.tries:
            pod = await self._own_pod()
            failures = 0 if pod is not None else failures + 1
            for status in pod.status.container_statuses if pod is not None else ():
                if status.name == self.container and status.state.terminated is not None:
                    return status.state.terminated.exit_code
            await self._report_progress()
            await asyncio.sleep(self.pause_seconds)
        return None

    async def _own_pod(self) -> _OwnPod | None:
        try:
            return await self.client.get(_OwnPod, self.pod)
        except OperatorError as error:
            _say(str(error))
            return None

    async def _report_progress(self) -> None:
        """Save the profiler's status if it changed. A failure is only logged: the results matter."""
        files = dict(self._files((STATUS_FILE,)))
        digest = hashlib.sha256(files.get(STATUS_FILE, b"")).hexdigest()
        if not files or digest == self.reported:
            return
        try:
            await self._write(files)
        except (OperatorError, UnicodeDecodeError) as error:
            _say(f"failed to save {STATUS_FILE}: {error}")
        else:
            self.reported = digest

    def _files(self, names: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
        """The files with these names that were written in this run."""
        for name in names:
            path = self.folder / name
            if path.is_file() and path.stat().st_mtime > self.began:
                yield name, path.read_bytes()

    async def _write(self, files: Mapping[str, bytes]) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**self.metadata, **self.output._asdict()},
            "data": {name: content.decode("utf-8") for name, content in files.items()},
        }
        await self.client.apply(Output, body, force=True)


async def _copied(
    output: Key, metadata: Object, folder: Path, container: str, results: str, *, is_fresh: bool
) -> int:
    async with await connect(user_agent=user_agent()) as transport:
        copier = _Copier(
            Client(transport, field_manager=_MANAGER),
            output,
            metadata,
            folder,
            container,
            results,
            pod=Key(output.namespace, os.environ.get("HOSTNAME", "")),
            pause_seconds=float(os.environ.get("COPIER_PAUSE_SECONDS", "5")),
            tries=int(os.environ.get("COPIER_TRIES", "60")),
        )
        return await copier.run(is_fresh=is_fresh)


def _write_digests(files: Mapping[str, bytes]) -> None:
    """Write the digest of each file to the termination log, which the kubelet puts into the pod's status."""
    lines = (f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    log = Path(os.environ.get("COPIER_TERMINATION_LOG", "/dev/termination-log"))
    try:
        log.write_text("".join(lines), encoding="utf-8")
    except OSError as error:
        _say(f"failed to report the digests of the results: {error}")


def _say(text: str) -> None:
    print(f"output-copier: {text}", file=sys.stderr, flush=True)


def _failed(text: str) -> int:
    _say(text)
    return 1
