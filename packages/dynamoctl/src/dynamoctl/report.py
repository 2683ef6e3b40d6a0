"""`dynamoctl report`: one archive with what helps to understand a graph from elsewhere, without secrets."""

import asyncio
import io
import os
import sys
import tarfile
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.files.yaml_writer import write_yaml
from dynamo_graphs.product import version
from dynamoctl.cluster_options import Where
from dynamoctl.events import happenings, owned_uids
from dynamoctl.explanation import explanation
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.log_lines import bounded_lines, log_line
from dynamoctl.members import members
from dynamoctl.redaction import redacted, redacted_text
from dynamoctl.resource_args import GRAPHS
from dynamoctl.running import SELECTOR
from dynamoctl.target import Target, place
from kube_runtime.client.api_errors import error_of_answer
from kube_runtime.client.transport import Request
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

_OK = 200
_OWNER_ONLY = 0o600
_OPERATOR_PODS = "control-plane=controller-manager"


def write_report(name: str, where: Where, file: Path | None) -> ExitCode:
    """Write the archive, for its owner only, and print its name.

    Raises: CycloptsError; ConfigError if the file exists or cannot be written; OperatorError, or a group.
    """
    return asyncio.run(_report(name, where, file))


async def _report(name: str, where: Where, file: Path | None) -> ExitCode:
    now = datetime.now(UTC)
    async with place(name, where, GRAPHS) as at:
        graph = await at.found()
        path = file or Path(f"dynamo-{graph.metadata.name}-{now:%Y%m%dT%H%M%SZ}.tar.gz")
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY)
        except OSError as error:
            raise ConfigError(str(path), f"cannot create it: {error.strerror}") from error
        with (
            os.fdopen(descriptor, "wb") as stream,
            tarfile.open(fileobj=stream, mode="w:gz") as archive,
        ):
            folder = path.name.removesuffix(".tar.gz")
            async with aclosing(_files(at, graph, now)) as files:
                async for title, text in files:
                    _add(archive, f"{folder}/{title}", text, now)
    print(path)
    print("Read it before you send it: it has names, images and logs.", file=sys.stderr)
    return ExitCode.OK


async def _files(
    at: Target[DynamoGraphDeployment], graph: DynamoGraphDeployment, now: datetime
) -> AsyncGenerator[tuple[str, str], None]:
    """The files of the archive: name and content. What cannot be read is noted in `missing.txt`."""
    reading, lacks = at.reading, list[str]()
    told = explanation(graph, now=now)
    yield "why.txt", "".join(f"{each}\n" for each in (*told.said, *told.advice))
    server = await reading.client.get_json("/version")
    yield "versions.txt", f"dynamoctl {version()}\nKubernetes {server['gitVersion']}\n"
    found = await members(reading.client, graph.key)
    lacks += found.unread
    owned = {each.metadata.uid: each for each in (graph, *_all(found.by_owner))}
    uids = owned_uids(graph, found.by_owner)
    objects = [owned[uid] for uid in sorted(uids) if uid in owned]
    for each in sorted(objects, key=lambda it: (it.KIND.name, it.metadata.name)):
        if text := await _yaml(reading, each, lacks):
            yield f"objects/{each.KIND.name}-{each.metadata.name}.yaml", text
    listed = await reading.all_raw(Event.KIND, graph.metadata.namespace)
    lines = [asdict(each) for each in happenings(listed, uids)]
    yield (
        "events.txt",
        "".join(redacted_text("  ".join(map(str, it.values()))) + "\n" for it in lines),
    )
    for pod in (each for each in objects if isinstance(each, Pod)):
        async for title, text in _logs(reading, pod.key, lacks):
            yield f"logs/{title}", text
    async for title, text in _operator(reading, lacks):
        yield title, text
    if lacks:
        yield "missing.txt", "".join(f"{each}\n" for each in lacks)


async def _operator(reading: Reading, lacks: list[str]) -> AsyncGenerator[tuple[str, str], None]:
    """The operators with their logs, and the nodes."""
    try:
        for each in await reading.all(Deployment, labels=SELECTOR):
            if text := await _yaml(reading, each, lacks):
                yield f"operator/{each.metadata.namespace}-{each.metadata.name}.yaml", text
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
    path = Pod.KIND.path(*pod, "log")
    parameters = {"timestamps": "true", "tailLines": _TAIL_LINES, **query}
    answer = await reading.transport.send(Request("GET", path, parameters, accept="*/*"))
    lines: list[str] = []
    size = 0
    try:
        if answer.status != _OK:
            raise error_of_answer(answer.status, answer.headers, await answer.read())
        async with aclosing(bounded_lines(answer.body)) as found:
            async for raw in found:
                line = log_line(raw)
                lines.append(redacted_text(f"{line.time} {line.text}\n"))
                size += len(lines[-1])
                if size > _LOG_BYTES:
                    lines.append("(the rest was left out)\n")
                    break
    finally:
        await answer.aclose()
    return "".join(lines)


def _all(by_owner: Mapping[str, Sequence[Resource]]) -> Iterator[Resource]:
    for each in by_owner.values():
        yield from each


def _add(archive: tarfile.TarFile, name: str, text: str, now: datetime) -> None:
    body = text.encode()
    entry = tarfile.TarInfo(visible(name))
    entry.size, entry.mtime = len(body), int(now.timestamp())
    archive.addfile(entry, io.BytesIO(body))
