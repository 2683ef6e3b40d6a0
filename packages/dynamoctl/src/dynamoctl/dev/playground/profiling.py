"""Run the profiler for the simulated pods of profiling Jobs, and report their status as a kubelet would.

Whatever the image, the analytic profiler runs in this process: formulas, no GPU.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import structlog
import yaml

from dynamo_graphs.api import labels
from dynamo_graphs.api.profiling import COPIER, PROFILER
from dynamo_graphs.types.profiling import JobPodInFull, Output
from dynamo_profiler import command
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Change
from kube_runtime.client.requests import Client
from kube_runtime.errors import NotFound, OperatorError
from kube_runtime.kind import Object
from kube_runtime.types.core import Pod

_COPY = 3  # arguments of the copier for its target: namespace, name, metadata
_log = structlog.get_logger()


async def run_profiling_pods(client: Client) -> NoReturn:
    """Profile for each new pod, one after the other, until cancelled."""
    queue = asyncio.Queue[JobPodInFull]()
    informer = Informer(JobPodInFull, labels=labels.REQUEST)
    cache = Cache()
    cache.add(informer.store)

    def created(change: Change[JobPodInFull]) -> None:
        if change.old is None and change.new is not None:
            queue.put_nowait(change.new)

    cache.subscribe(JobPodInFull, created)
    async with asyncio.TaskGroup() as group:
        group.create_task(informer.run(client))
        while True:
            await _profile(client, await queue.get())


async def _profile(client: Client, pod: JobPodInFull) -> None:
    try:
        if (await client.get(Pod, pod.key)).status.phase not in ("Pending", ""):
            return
        status = await _outcome(client, pod)
        await client.merge_patch(Pod, pod.key, {"status": status}, subresource="status")
    except NotFound:
        return  # deleted meanwhile
    except OperatorError as error:
        _log.warning("profiling pod not simulated", pod=str(pod.key), error=str(error))


async def _outcome(client: Client, pod: JobPodInFull) -> Object:
    """Run the pod's containers and save the output; the status of the finished pod."""
    containers: dict[str, Object] = {
        container["name"]: container for container in pod.spec["containers"]
    }
    arguments = containers[PROFILER]["args"]
    variables = {
        variable["name"]: variable.get("value", "") for variable in containers[PROFILER]["env"]
    }
    with tempfile.TemporaryDirectory(prefix="dynamo-profiling-") as folder:
        configuration = yaml.safe_load(arguments[1]) | {"output_dir": folder}
        log = Path(folder, "termination-log")
        try:
            await asyncio.to_thread(
                command.run,
                yaml.safe_dump(configuration),
                discovers="--enable-gpu-discovery" in arguments,
                environ=variables,
                termination_log=log,
            )
        except OperatorError as error:
            return _status("Failed", ((PROFILER, 1, str(error)), (COPIER, 0, "")))
        files = await asyncio.to_thread(_files, Path(folder))
    namespace, name, metadata = _target(containers[COPIER]["args"])
    output_metadata = {**yaml.safe_load(metadata)["metadata"], "namespace": namespace, "name": name}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": output_metadata, "data": files}
    await client.apply(Output, body, force=True)
    digests = "".join(_digest(name, text) for name, text in files.items())
    return _status("Succeeded", ((PROFILER, 0, ""), (COPIER, 0, digests)))


def _files(folder: Path) -> dict[str, str]:
    return {file.name: file.read_text("utf-8") for file in sorted(folder.glob("*.yaml"))}


def _target(arguments: list[str]) -> list[str]:
    """The target of the output, after a command, or a script and its name."""
    first = 1 + (arguments[1] == COPIER)
    return arguments[first : first + _COPY]


def _digest(name: str, text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n"


def _status(phase: str, ended: tuple[tuple[str, int, str], ...]) -> Object:
    return {"phase": phase, "containerStatuses": list(_containers(ended))}


def _containers(ended: tuple[tuple[str, int, str], ...]) -> Iterator[Object]:
    for name, code, message in ended:
        reason = "Error" if code else "Completed"
        state = {"exitCode": code, "reason": reason, "message": message}
        kept = {"name": name, "image": name, "imageID": "", "ready": False, "restartCount": 0}
        yield kept | {"state": {"terminated": state}}
