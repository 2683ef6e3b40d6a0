"""`dynamoctl report`: an archive with all that helps others to understand a graph, without secrets."""

import io
import json
import os
import re
import sys
import tarfile
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from dynamo_graphs.ages import counted
from dynamo_graphs.explanation import explained, explanation
from dynamo_graphs.leadership import PODS
from dynamo_graphs.logs import log_of
from dynamo_graphs.members import events_about, members, owned_uids
from dynamo_graphs.operators import SELECTOR
from dynamo_graphs.output import write_yaml
from dynamo_graphs.reader import GRAPHS, Reading, warn
from dynamo_operator import version
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.options import Where
from dynamoctl.target import target_of
from kube_runtime.client.client import ANSWER_SECONDS
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ApiError, ConfigError, DecodeError, Invalid, OperatorError, leaves, visible
from kube_runtime.types.kinds import Deployment, Event, Node, Pod
from kube_runtime.types.meta import Key, Object, Resource

REDACTED = "REDACTED"

_WORDS = (
    r"token(?!s|iz)|secret|passw(?:or)?d|passphrase|pwd|credential|cookie|authorization|auth(?!or)"
    r"|(?:private|access|account|api|encryption|master|shared|signing|ssh)[-_]?key"
    r"|(?<![a-z])sig(?:nature)?(?![a-z])"
)
"""What the names of variables, fields, flags, parameters and annotations with secrets contain."""

_SECRET_NAME = re.compile(_WORDS, re.IGNORECASE)

_REFERENCE = re.compile(r"(Ref|Names?|From|FromSecret|Path|Secrets|[-_](?i:dir|file|name|path))$")
"""How names end that refer to a secret and do not hold one: `secretKeyRef`, `secretName`, `--token-file`."""

_KUBERNETES_FIELDS = {"secret", "serviceAccountToken"}
"""Fields of Kubernetes with such a name whose value is an object without secrets."""

_SHOWN_VARIABLE = re.compile(
    r"(?:(?:CUDA|DYN|DYNAMO|ETCD|GROVE|KUBERNETES|LWS|MODEL|NATS|NCCL|NIXL|NVIDIA|OMPI|OMP|OTEL|POD|PROMETHEUS|PYTHON|RAY"
    r"|RUST|SGL|SGLANG|TLLM|TORCH|TRANSFORMERS|TRITON|TRTLLM|UCX|VLLM|WORKER)(?:_\w+)?"
    r"|HF_(?:HOME|HUB_\w+)|HOME|HOST|HOSTNAME|LANG|LD_LIBRARY_PATH|LOG_LEVEL|PATH|PORT|PYTHON[A-Z]+|TZ|USER)\Z"
)
"""Variables whose values are shown, if their names do not announce a secret: those of the operator, of
Kubernetes, of Dynamo's runtime and of the engines."""

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

# Every repetition in these patterns is bounded, or consumes what it has read, so time is linear in the text.
_KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----"
    r"(?:.{0,32768}?-----END [A-Z0-9 ]{0,40}-----|.{0,32768})",
    re.DOTALL,
)
"""A private key in PEM, also without its end. One of 8192 bits has 6,400 characters, in a log 9,600."""

_KEY_LINE = re.compile(r"(?m)(?:^|(?<=\s))[A-Za-z0-9+/]{64,76}={0,2}$")
"""A line of base64 as in PEM, of a key whose beginning is missing."""

_HEADER = re.compile(
    r"""(?ix) (?P<head> (?:authorization|cookie) \\{0,7}["']? [ \t]{0,8} [=:] [ \t]{0,8} \\{0,7}["']?)
    [^"'\r\n\\]+"""
)
"""A header with its whole value: `Authorization: token …`."""

_SCHEME = re.compile(r"(?i)(?P<head>\b(?:bearer|basic)[ \t]{1,8})[^\s\"',;]{8,}")

_ANNOUNCED = re.compile(
    rf"""(?ix) (?P<name> (?:{_WORDS}) [\w.-]{{0,128}})
    (?: \\{{0,7}}["']? [ \t]{{0,8}} (?: => | := | [=:] ) [ \t]{{0,8}} | (?P<blank> [ \t]{{1,8}}) )
    (?: [bru]{{1,2}} (?=["']))?"""
)
"""What stands before a secret: `HF_TOKEN=`, `"password": `, `--api-key `, `&sig=`."""

_ANNOUNCED_VALUE = re.compile(
    r"""(?xm)
    (?P<open> \[ ) [^\]\n]{0,4096}
    | (?P<escaped> \\{1,7}" ) [^"\n]*? (?= \\{0,7}" | $ )
    | (?P<double> " ) (?: [^"\\\n] | \\. )*
    | (?P<single> ' ) [^'\n]*
    | (?! [|>] | \{[\s"'\\}] ) [^\s"']+
    """
)

_NO_VALUE = re.compile(r"""(?i)(?:true|false|null|none|~|""|'')(?=[\s"',;)}\]]|\Z)""")
_FEW_DIGITS = re.compile(r"""[\d.]{1,8}(?:ms|s)?(?=[\s"',;)}\]]|\Z)""")
"""What follows "time to first token: "."""

_SHAPED = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|(?:sk|nvapi|glpat|pypi|xox[a-z])-[A-Za-z0-9_-]{10,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|(?:npm|dckr_pat)_[A-Za-z0-9_-]{20,}"
    r"|A[KS]IA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_+/=-]{10,}(?:\.[A-Za-z0-9_-]*){0,4})"
)
"""Tokens by their shape: Hugging Face, OpenAI, NVIDIA, GitLab, PyPI, Slack, GitHub, npm, Docker, AWS, Google,
JSON web tokens, and any JSON object in base64, as the login of a registry is."""

_USER_IN_URL = re.compile(r"(?P<head>://)(?:[^/\s@]{1,256}|[^/\s@:]{0,64}:[^\s@\"']{1,256})@(?!sha256:)")
_QUERY = re.compile(r"(?i)(?P<head>[?&](?:code|key|x-(?:amz|goog)-[a-z-]{1,32})=)[^&\s\"']+")
_USER_OPTION = re.compile(r"(?P<head>(?:\s-u|--user)[ =]{1,8}[\"']?[^\s:\"']{1,128}:)[^\s\"']+")


# In doubt, a value is removed.
def redacted_text(text: str) -> str:
    """The text without private keys, tokens, passwords and URLs that contain one."""
    cleaned = _without_announced(_KEY_LINE.sub(REDACTED, _KEY_BLOCK.sub(REDACTED, text)))
    for pattern in (_HEADER, _SCHEME, _QUERY, _USER_OPTION):
        cleaned = pattern.sub(rf"\g<head>{REDACTED}", cleaned)
    cleaned = _SHAPED.sub(REDACTED, cleaned)
    return _USER_IN_URL.sub(rf"\g<head>{REDACTED}@", cleaned)


def _without_announced(text: str) -> str:
    parts: list[str] = []
    end = 0
    for match in _ANNOUNCED.finditer(text):
        if (
            match.start() >= end
            and _announces(match)
            and (value := _ANNOUNCED_VALUE.match(text, match.end()))
        ):
            opened = value[value.lastgroup] if value.lastgroup else ""
            parts += (text[end : match.end()], opened, REDACTED)
            end = value.end()
    return "".join((*parts, text[end:]))


def _announces(match: re.Match[str]) -> bool:
    """Whether a secret follows, and not the name of one, a switch, a tag or a measurement."""
    text, start, end = match.string, match.start(), match.end()
    before = re.split(r"[\s\"']", text[max(0, start - 64) : start])[-1]
    if _REFERENCE.search(match["name"]) or _NO_VALUE.match(text, end):
        return False
    if match["blank"]:  # the argument of a flag, such as `--registry-password x`
        return before.startswith("-") and not text.startswith("--", end)
    if re.search(r"[\"'][ \t]", match[0]) and text[end : end + 1] not in ('"', "'", "["):
        return False  # prose, such as `volume "hf-token" : not found`
    if "/" in before and "?" not in before and match[0].endswith(":"):
        return False  # an image, such as `registry.example.com/auth-proxy:1.0`
    return match["name"].lower() != "token" or not _FEW_DIGITS.match(text, end)


def redacted(body: Object) -> Object:
    """An object without values of secrets, managed fields and its last-applied copy."""
    metadata = {k: v for k, v in body.get("metadata", {}).items() if k != "managedFields"}
    notes = metadata.get("annotations")
    if notes:
        metadata["annotations"] = {k: v for k, v in notes.items() if k != _LAST_APPLIED}
    if body.get("kind") == "Secret":
        keys = {key: REDACTED for field in ("data", "stringData") for key in body.get(field) or {}}
        return {
            "apiVersion": body["apiVersion"],
            "kind": "Secret",
            "metadata": _value(metadata),
            "data": keys,
        }
    result: Object = _value({**body, "metadata": metadata})
    return result


def _value(value: object) -> Any:
    if isinstance(value, dict):
        name = value.get("name")
        cleaned = {}
        for key, entry in value.items():
            is_secret = _is_secret(key) and not _REFERENCE.search(key)
            if isinstance(entry, bool) or entry is None:
                is_secret = False
            if isinstance(entry, dict) and key in _KUBERNETES_FIELDS:
                is_secret = False
            cleaned[key] = REDACTED if is_secret else _value(entry)
        is_shown = isinstance(name, str) and _SHOWN_VARIABLE.match(name) and not _is_secret(name)
        if isinstance(name, str) and "value" in value and not is_shown:
            cleaned["value"] = REDACTED  # of a container's variable, or of a probe's header
        return cleaned
    if isinstance(value, list):
        return [
            REDACTED if isinstance(entry, str) and _is_flag(before) else _value(entry)
            for before, entry in pairwise([None, *value])
        ]
    return _string(value) if isinstance(value, str) else value


def _string(text: str) -> str:
    """The text without secrets. JSON, such as an earlier spec in an annotation, is treated as an object."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            body = json.loads(text)
            cleaned = _value(body)
            return redacted_text(text if cleaned == body else json.dumps(cleaned))
        except (ValueError, RecursionError):
            pass
    return redacted_text(text)


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None


def _is_flag(argument: Any) -> bool:
    """Whether the next argument of a command is a secret, as after `--api-key`."""
    is_bare = isinstance(argument, str) and argument.startswith("-") and "=" not in argument
    return is_bare and _is_secret(argument) and not _REFERENCE.search(argument)


_TAIL_LINES = "2000"
"""Last lines of each log."""

_LOG_BYTES = 2 * 1024**2
"""Most bytes of each log; later lines are left out."""

_OWNER_ONLY = 0o600
_MISSING = "missing.txt"


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
            with os.fdopen(descriptor, "wb") as stream, tarfile.open(fileobj=stream, mode="w:gz") as archive:
                folder = path.name.removesuffix(".tar.gz")
                async with aclosing(_files(at.reading, graph, now, unread)) as files:
                    async for title, text in files:
                        body = redacted_text(text).encode()  # the only way into the archive
                        entry = tarfile.TarInfo(visible(f"{folder}/{title}"))
                        entry.size, entry.mtime = len(body), int(now.timestamp())
                        archive.addfile(entry, io.BytesIO(body))
        except BaseException:  # also Ctrl-C; half of a report looks like a whole one
            path.unlink(missing_ok=True)
            raise
    print(path)
    if unread:
        warn(f"{counted(len(unread), 'part')} could not be read: see {_MISSING}")
    print("Read it before you send it: it has names, images and logs.", file=sys.stderr)
    return ExitCode.OK


class Unread(list[str]):
    """What a report lacks, and why: a line for each part."""

    @contextmanager
    def noting(self, part: str) -> Iterator[None]:
        """Note an error instead of raising it; the rest of the block is skipped."""
        try:
            yield
        except* OperatorError as group:
            for error in leaves(group):
                reason = error.message if isinstance(error, ApiError | DecodeError) else error
                self.append(f"{part}: {reason}")


async def _files(
    reading: Reading, graph: DynamoGraphDeployment, now: datetime, unread: Unread
) -> AsyncGenerator[tuple[str, str], None]:
    """`missing.txt`, the last one, lists what is unread."""
    why = explanation(graph, now=now)
    with unread.noting("why"):
        why = await explained(reading, graph)
    yield "why.txt", "".join(f"{line}\n" for line in why.lines)
    versions = [f"dynamoctl {version()}\n"]
    with unread.noting("version"):
        server = await reading.client.get_json("version")
        versions.append(f"Kubernetes {server['gitVersion']}\n")
    yield "versions.txt", "".join(versions)
    by_owner: Mapping[str, list[Resource]] = {}
    with unread.noting("objects"):
        dependents = await members(reading.client, graph.key)
        by_owner = dependents.by_owner
        unread.extend(dependents.unread)
    owned = {resource.metadata.uid: resource for resource in (graph, *chain(*by_owner.values()))}
    uids = owned_uids(graph, by_owner)
    objects = [owned[uid] for uid in sorted(uids) if uid in owned]
    for resource in sorted(objects, key=lambda it: (it.KIND.name, it.metadata.name)):
        if text := await _yaml(reading, resource, unread):
            yield f"objects/{resource.KIND.name}-{resource.metadata.name}.yaml", text
    with unread.noting("Events"):
        listed = await reading.all_raw(Event.KIND, graph.metadata.namespace)
        events = (map(str, event.values()) for event in events_about(listed, uids))
        yield "events.txt", "".join(f"{'  '.join(texts)}\n" for texts in events)
    for pod in (resource for resource in objects if isinstance(resource, Pod)):
        async for title, text in _logs(reading, pod.key, "main", unread):
            yield f"logs/{title}", text
    async for title, text in _operator(reading, unread):
        yield title, text
    unread.extend(reading.unreadable)
    if unread:
        yield _MISSING, "".join(f"{line}\n" for line in unread)


async def _operator(reading: Reading, unread: Unread) -> AsyncGenerator[tuple[str, str], None]:
    with unread.noting("operators"):
        for deployment in await reading.all(Deployment, labels=SELECTOR):
            if text := await _yaml(reading, deployment, unread):
                namespace, name = deployment.key
                yield f"operator/{namespace}-{name}.yaml", text
    with unread.noting("pods of operators"):
        for pod in await reading.all(Pod, labels=PODS):
            async for title, text in _logs(reading, pod.key, "manager", unread):
                yield f"operator/{title}", text
    with unread.noting("nodes"):
        nodes = await reading.all(Node)
        rows = (f"{node.metadata.name}  {node.status.allocatable}\n" for node in nodes)
        yield "nodes.txt", "".join(rows)


async def _yaml(reading: Reading, resource: Resource, unread: Unread) -> str:
    raw: Object | None = None
    with unread.noting(f"{resource.KIND.name} {resource.key}"):
        raw = await reading.document(resource.KIND, resource.key)
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
            parameters = {"timestamps": "true", "tailLines": _TAIL_LINES, "container": container}
            stream = log_of(reading.transport, pod, parameters | query, timeout_seconds=ANSWER_SECONDS)
            size = 0
            try:
                async with aclosing(stream) as lines:
                    async for line in lines:
                        texts.append(f"{line.time} {line.text}\n")
                        size += len(texts[-1])
                        if size > _LOG_BYTES:
                            texts.append("(the rest was left out)\n")
                            break
            except Invalid:
                if not suffix:  # most containers have never restarted
                    raise
                return
        if texts:
            yield f"{pod.name}{suffix}.log", "".join(texts)
