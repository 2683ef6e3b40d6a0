"""`dynamoctl report`: an archive with all that helps others to understand a graph, without secrets."""

import io
import os
import sys
import tarfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.files.yaml_writer import write_yaml
from dynamo_graphs.product import version
from dynamoctl.ages import counted
from dynamoctl.cluster.members import members
from dynamoctl.cluster.target import GRAPHS, target_of
from dynamoctl.inspect.events import events_about, owned_uids
from dynamoctl.inspect.explanation import explanation
from dynamoctl.inspect.logs import log_of
from dynamoctl.inspect.redaction import redacted, redacted_text
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.running import SELECTOR
from dynamoctl.options import Where
from dynamoctl.screen import warn
from kube_runtime.client.transport import ANSWER_SECONDS
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.errors import ApiError, ConfigError, DecodeError, Invalid, OperatorError, leaves
from kube_runtime.kind import Key, Object
from kube_runtime.types.apps import Deployment
from kube_runtime.types.core import Event, Node, Pod
from kube_runtime.types.meta import Resource

_TAIL_LINES = "2000"
"""Last lines of each log."""

_LOG_BYTES = 2 * 1024**2
"""Most bytes of each log; later lines are left out."""

_OWNER_ONLY = 0o600
_MISSING = "missing.txt"
_OPERATOR_PODS = "control-plane=controller-manager"


async def write_report(name: str, where: Where, file: Path | None) -> ExitCode:
    """Write the archive, for its owner only, and print its name.

    Raises: CycloptsError; ConfigError if the file exists or cannot be written; OperatorError for the graph.
    """
    now = datetime.now(UTC)
    unread = Unread()
    async with target_of(name, where, GRAPHS) as at:
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
                async with aclosing(_files(at.reading, graph, now, unread)) as files:
                    async for title, text in files:
                        _add(archive, f"{folder}/{title}", text, now)
        except BaseException:  # also Ctrl-C; half of a report looks like a whole one
            path.unlink(missing_ok=True)
            raise
    print(path)
    if unread.lines:
        warn(f"{counted(len(unread.lines), 'part')} could not be read: see {_MISSING}")
    print("Read it before you send it: it has names, images and logs.", file=sys.stderr)
    return ExitCode.OK


@dataclass(frozen=True, slots=True)
class Unread:
    """What a report lacks, and why: a line for each part."""

    lines: list[str] = field(default_factory=list[str])

    @contextmanager
    def noting(self, part: str) -> Iterator[None]:
        """Note an error instead of raising it; the rest of the block is skipped."""
        try:
            yield
        except* OperatorError as group:
            for error in leaves(group):
                reason = error.message if isinstance(error, ApiError | DecodeError) else error
                self.lines.append(f"{part}: {reason}")


async def _files(
    reading: Reading, graph: DynamoGraphDeployment, now: datetime, unread: Unread
) -> AsyncGenerator[tuple[str, str], None]:
    """The files of the archive: name and content. `missing.txt`, the last one, lists what is unread."""
    why = explanation(graph, now=now)
    yield "why.txt", "".join(f"{line}\n" for line in (*why.said, *why.advice))
    versions = [f"dynamoctl {version()}\n"]
    with unread.noting("version"):
        server = await reading.client.get_json("version")
        versions.append(f"Kubernetes {server['gitVersion']}\n")
    yield "versions.txt", "".join(versions)
    by_owner: Mapping[str, list[Resource]] = {}
    with unread.noting("objects"):
        dependents = await members(reading.client, graph.key)
        by_owner = dependents.by_owner
        unread.lines.extend(dependents.unread)
    owned = {resource.metadata.uid: resource for resource in (graph, *chain(*by_owner.values()))}
    uids = owned_uids(graph, by_owner)
    objects = [owned[uid] for uid in sorted(uids) if uid in owned]
    for resource in sorted(objects, key=lambda it: (it.KIND.name, it.metadata.name)):
        if text := await _yaml(reading, resource, unread):
            yield f"objects/{resource.KIND.name}-{resource.metadata.name}.yaml", text
    with unread.noting("Events"):
        listed = await reading.all_raw(Event.KIND, graph.metadata.namespace)
        events = (map(str, asdict(event).values()) for event in events_about(listed, uids))
        yield "events.txt", "".join(f"{'  '.join(texts)}\n" for texts in events)
    for pod in (resource for resource in objects if isinstance(resource, Pod)):
        async for title, text in _logs(reading, pod.key, "main", unread):
            yield f"logs/{title}", text
    async for title, text in _operator(reading, unread):
        yield title, text
    unread.lines.extend(reading.unreadable)
    if unread.lines:
        yield _MISSING, "".join(f"{line}\n" for line in unread.lines)


async def _operator(reading: Reading, unread: Unread) -> AsyncGenerator[tuple[str, str], None]:
    """The operators with their logs, and the nodes."""
    with unread.noting("operators"):
        for deployment in await reading.all(Deployment, labels=SELECTOR):
            if text := await _yaml(reading, deployment, unread):
                namespace, name = deployment.key
                yield f"operator/{namespace}-{name}.yaml", text
    with unread.noting("pods of operators"):
        for pod in await reading.all(Pod, labels=_OPERATOR_PODS):
            async for title, text in _logs(reading, pod.key, "manager", unread):
                yield f"operator/{title}", text
    with unread.noting("nodes"):
        nodes = await reading.all(Node)
        rows = (f"{node.metadata.name}  {node.status.allocatable}\n" for node in nodes)
        yield "nodes.txt", "".join(rows)


async def _yaml(reading: Reading, resource: Resource, unread: Unread) -> str:
    """The object without secrets; "" if it cannot be read or is gone."""
    raw: Object | None = None
    with unread.noting(f"{resource.KIND.name} {resource.key}"):
        raw = await reading.raw(resource.KIND, resource.key)
    if raw is None:
        return ""
    stream = io.StringIO()
    write_yaml([redacted(raw)], stream)
    return stream.getvalue()


async def _logs(
    reading: Reading, pod: Key, container: str, unread: Unread
) -> AsyncGenerator[tuple[str, str], None]:
    """The log of a container, and that before its last restart; of one that breaks off, what was read."""
    for suffix, query in (("", {}), ("-previous", {"previous": "true"})):
        texts: list[str] = []
        with unread.noting(f"log{suffix} of {pod}"):
            try:
                await _read_log(reading, pod, {"container": container, **query}, texts)
            except Invalid:
                if not suffix:  # most containers have never restarted
                    raise
                return
        if texts:
            yield f"{pod.name}{suffix}.log", "".join(texts)


async def _read_log(reading: Reading, pod: Key, query: Mapping[str, str], texts: list[str]) -> None:
    """Add the last lines of a log to `texts`."""
    parameters = {"timestamps": "true", "tailLines": _TAIL_LINES, **query}
    stream = log_of(reading.transport, pod, parameters, timeout_seconds=ANSWER_SECONDS)
    size = 0
    async with aclosing(stream) as lines:
        async for line in lines:
            texts.append(f"{line.time} {line.text}\n")
            size += len(texts[-1])
            if size > _LOG_BYTES:
                texts.append("(the rest was left out)\n")
                return


def _add(archive: tarfile.TarFile, name: str, text: str, now: datetime) -> None:
    """Add a file without secrets: the only way into the archive."""
    body = redacted_text(text).encode()
    entry = tarfile.TarInfo(visible(name))
    entry.size, entry.mtime = len(body), int(now.timestamp())
    archive.addfile(entry, io.BytesIO(body))
