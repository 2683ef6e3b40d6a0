"""`dynamoctl report`: one archive with what helps to understand a graph from elsewhere, without secrets."""

import io
import os
import sys
import tarfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.files.yaml_writer import write_yaml
from dynamo_graphs.product import version
from dynamoctl.cluster.members import members
from dynamoctl.cluster.target import GRAPHS, Target, place
from dynamoctl.inspect.events import happenings, owned_uids
from dynamoctl.inspect.explanation import explanation
from dynamoctl.inspect.logs import log_of
from dynamoctl.inspect.redaction import redacted, redacted_text
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.running import SELECTOR
from dynamoctl.options import Where
from kube_runtime.client.transport import ANSWER_SECONDS
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.errors import ApiError, ConfigError
from kube_runtime.kind import Key
from kube_runtime.types.apps import Deployment
from kube_runtime.types.core import Event, Node, Pod
from kube_runtime.types.meta import Resource

_TAIL_LINES = "2000"
"""Last lines of each log."""

_LOG_BYTES = 2 * 1024**2
"""Most bytes of each log; the earlier lines count."""

_OWNER_ONLY = 0o600
_OPERATOR_PODS = "control-plane=controller-manager"


async def write_report(name: str, where: Where, file: Path | None) -> ExitCode:
    """Write the archive, for its owner only, and print its name.

    Raises: CycloptsError; ConfigError if the file exists or cannot be written; OperatorError, or a group.
    """
    now = datetime.now(UTC)
    async with place(name, where, GRAPHS) as at:
        graph = await at.get()
        path = file or Path(f"dynamo-{graph.metadata.name}-{now:%Y%m%dT%H%M%SZ}.tar.gz")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        except OSError as error:
            raise ConfigError(str(path), f"cannot create it: {error.strerror}") from error
        try:
            with (
                os.fdopen(descriptor, "wb") as stream,
                tarfile.open(fileobj=stream, mode="w:gz") as archive,
            ):
                folder = path.name.removesuffix(".tar.gz")
                async with aclosing(_files(at, graph, now)) as files:
                    async for title, text in files:
                        _add(archive, f"{folder}/{title}", text, now)
        except BaseException:  # also Ctrl-C; half of a report looks like a whole one
            path.unlink(missing_ok=True)
            raise
    print(path)
    print("Read it before you send it: it has names, images and logs.", file=sys.stderr)
    return ExitCode.OK


async def _files(
    at: Target[DynamoGraphDeployment], graph: DynamoGraphDeployment, now: datetime
) -> AsyncGenerator[tuple[str, str], None]:
    """The files of the archive: name and content. What cannot be read is noted in `missing.txt`."""
    reading, lacks = at.reading, list[str]()
    why = explanation(graph, now=now)
    yield "why.txt", "".join(f"{line}\n" for line in (*why.said, *why.advice))
    server = await reading.client.get_json("/version")
    yield "versions.txt", f"dynamoctl {version()}\nKubernetes {server['gitVersion']}\n"
    dependents = await members(reading.client, graph.key)
    lacks += dependents.unread
    owned = {
        resource.metadata.uid: resource
        for resource in (graph, *chain(*dependents.by_owner.values()))
    }
    uids = owned_uids(graph, dependents.by_owner)
    objects = [owned[uid] for uid in sorted(uids) if uid in owned]
    for resource in sorted(objects, key=lambda it: (it.KIND.name, it.metadata.name)):
        if text := await _yaml(reading, resource, lacks):
            yield f"objects/{resource.KIND.name}-{resource.metadata.name}.yaml", text
    listed = await reading.all_raw(Event.KIND, graph.metadata.namespace)
    lines = [asdict(event) for event in happenings(listed, uids)]
    yield (
        "events.txt",
        "".join(redacted_text("  ".join(map(str, it.values()))) + "\n" for it in lines),
    )
    for pod in (resource for resource in objects if isinstance(resource, Pod)):
        async for title, text in _logs(reading, pod.key, lacks):
            yield f"logs/{title}", text
    async for title, text in _operator(reading, lacks):
        yield title, text
    if lacks:
        yield "missing.txt", "".join(f"{note}\n" for note in lacks)


async def _operator(reading: Reading, lacks: list[str]) -> AsyncGenerator[tuple[str, str], None]:
    """The operators with their logs, and the nodes."""
    try:
        for deployment in await reading.all(Deployment, labels=SELECTOR):
            if text := await _yaml(reading, deployment, lacks):
                yield (
                    f"operator/{deployment.metadata.namespace}-{deployment.metadata.name}.yaml",
                    text,
                )
        for pod in await reading.all(Pod, labels=_OPERATOR_PODS):
            async for title, text in _logs(reading, pod.key, lacks, container="manager"):
                yield f"operator/{title}", text
    except ApiError as error:
        lacks.append(f"operators: {error}")
    try:
        nodes = await reading.all(Node)
    except ApiError as error:
        lacks.append(f"nodes: {error}")
    else:
        rows = (f"{it.metadata.name}  {it.status.allocatable}\n" for it in nodes)
        yield "nodes.txt", "".join(rows)


async def _yaml(reading: Reading, resource: Resource, lacks: list[str]) -> str:
    """The object without secrets; "" if it cannot be read or is gone."""
    try:
        raw = await reading.raw(resource.KIND, resource.key)
    except ApiError as error:
        lacks.append(str(error))
        return ""
    if raw is None:
        return ""
    stream = io.StringIO()
    write_yaml([redacted(raw)], stream)
    return stream.getvalue()


async def _logs(
    reading: Reading, pod: Key, lacks: list[str], container: str = "main"
) -> AsyncGenerator[tuple[str, str], None]:
    """The log of a container, and that before its last restart."""
    for suffix, query in (("", {}), ("-previous", {"previous": "true"})):
        try:
            text = await _log(reading, pod, {"container": container, **query})
        except ApiError as error:
            if not suffix:  # most containers have never restarted
                lacks.append(f"log of {pod}: {error}")
        else:
            yield f"{pod.name}{suffix}.log", text


async def _log(reading: Reading, pod: Key, query: Mapping[str, str]) -> str:
    parameters = {"timestamps": "true", "tailLines": _TAIL_LINES, **query}
    stream = log_of(reading.transport, pod, parameters, timeout_seconds=ANSWER_SECONDS)
    texts: list[str] = []
    size = 0
    async with aclosing(stream) as lines:
        async for line in lines:
            texts.append(redacted_text(f"{line.time} {line.text}\n"))
            size += len(texts[-1])
            if size > _LOG_BYTES:
                texts.append("(the rest was left out)\n")
                break
    return "".join(texts)


def _add(archive: tarfile.TarFile, name: str, text: str, now: datetime) -> None:
    body = text.encode()
    entry = tarfile.TarInfo(visible(name))
    entry.size, entry.mtime = len(body), int(now.timestamp())
    archive.addfile(entry, io.BytesIO(body))
