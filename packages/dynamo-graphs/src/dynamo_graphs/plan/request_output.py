"""Parse the results of profiling: a graph, and ConfigMaps that belong to it.

The text comes from a program in an image of the user and is untrusted. Error messages name the file and
the place of a value that cannot be used.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import yaml

from dynamo_graphs.api.component import GROUP, VERSION
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.profiling import MOCKED_RESULTS_FILE, RESULTS_FILE, STATUS_FILE
from dynamo_graphs.files.yaml_reader import DEPTH_LIMIT, ShallowLoader
from dynamo_graphs.validation.versions import later_version
from kube_runtime.decode import decode
from kube_runtime.errors import DecodeError
from kube_runtime.kind import Object

ADDITIONAL_LIMIT_BYTES = 250_000
"""Bytes of all additional ConfigMaps as JSON."""

_GRAPH_LIMIT_BYTES = 900_000
"""Bytes of the graph as JSON: etcd stores 1.5 MiB, and the request contains ConfigMaps too."""
_NODES_LIMIT = 200_000
_NUMBER_LIMIT = 64
"""Characters of a number; Kubernetes accepts no longer ones, and parsing them takes long."""
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
STATUS_LIMIT = 16 * 1024
"""Characters of a profiler's status file, which has a few lines; a longer one is ignored."""
_TEXT_LIMIT = 200
_NAMED = 10


class BadOutput(ValueError):
    """The output of the profiler is unusable; the message is the reason."""


@dataclass(frozen=True, slots=True)
class ProfilingResult:
    """A graph and its ConfigMaps; `ignored` are the other documents, as `Kind name`."""

    graph: Object
    config_maps: tuple[Object, ...] = ()
    ignored: tuple[str, ...] = ()

    def renamed(self, graph: Object, names: Mapping[str, str]) -> "ProfilingResult":
        """Return the result with renamed ConfigMaps, and with this graph, which refers to them."""
        maps = tuple(
            config_map | {"metadata": config_map["metadata"] | {"name": names[_name(config_map)]}}
            if _name(config_map) in names
            else config_map
            for config_map in self.config_maps
        )
        return replace(self, graph=graph, config_maps=maps)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings for the user about the output."""
        if not self.ignored:
            return ()
        skipped = ", ".join(self.ignored[:_NAMED])
        return (f"Only ConfigMaps are created with the graph; skipped: {skipped}",)


@dataclass(frozen=True, slots=True)
class ProfilingProgress:
    """The progress that the profiler reports; texts are "" if it reports none."""

    phase: str = ""
    message: str = ""
    has_failed: bool = False


def parse_results(
    data: Mapping[str, str], config_map: str, *, is_mocked: bool, name: str
) -> ProfilingResult:
    """Parse the data of the output ConfigMap; `name` is for a graph without one.

    Raises:
        BadOutput: the output contains no usable graph.
    """
    file = MOCKED_RESULTS_FILE if is_mocked else RESULTS_FILE
    if file not in data:
        raise BadOutput(f"key {file} not found in ConfigMap {config_map}")
    graphs: list[Object] = []
    rest: list[Object] = []
    for document in documents(file, data[file]):
        (graphs if document["kind"] == DynamoGraphDeployment.KIND.name else rest).append(document)
    if not graphs:
        raise _no_graph(file, "no DynamoGraphDeployment found in YAML content")
    config_maps: list[Object] = []
    ignored: list[str] = []
    for document in rest:
        if document["kind"] == "ConfigMap" and _name(document):
            config_maps.append(document)
        else:
            ignored.append(f"{document['kind']} {_name(document)}".strip())
    return ProfilingResult(_graph(file, graphs[-1], name), tuple(config_maps), tuple(ignored))


def progress(data: Mapping[str, str]) -> ProfilingProgress:
    """Parse the profiler's status file; empty if it is missing or unreadable."""
    text = data.get(STATUS_FILE, "")
    if len(text) > STATUS_LIMIT:  # parsed repeatedly, in the event loop
        return ProfilingProgress()
    try:
        status: object = yaml.load(text, Loader=_Loader)  # noqa: S506  a safe loader
    except _UNREADABLE:
        return ProfilingProgress()
    if not isinstance(status, dict):
        return ProfilingProgress()
    return ProfilingProgress(
        phase=_line(status.get("phase")),
        message=_line(status.get("message")),
        has_failed=status.get("status") == "failed",
    )


def require_small(config_maps: Iterable[Object]) -> None:
    """Check that the ConfigMaps fit into the status.

    Raises:
        BadOutput: they are too large.
    """
    size = len(msgspec.json.encode(tuple(config_maps)))
    if size > ADDITIONAL_LIMIT_BYTES:
        raise BadOutput(
            f"ConfigMaps of the graph have {size} bytes as JSON (limit {ADDITIONAL_LIMIT_BYTES}, "
            "so that they fit in the status): reduce them, or store them separately"
        )


def named_config_maps(kept: Iterable[Object]) -> Iterator[Object]:
    """Return the ConfigMaps with a name; users may have edited the stored objects."""
    return (
        manifest for manifest in kept if manifest.get("kind") == "ConfigMap" and _name(manifest)
    )


def documents(file: str, text: str) -> Iterator[Object]:
    """Yield the documents that have a kind, as JSON; `file` names the text in messages.

    Raises:
        BadOutput: it is not YAML, or too large to be read.
    """
    try:
        for document in yaml.load_all(text, Loader=_Loader):
            if isinstance(document, dict) and isinstance(document.get("kind"), str):
                _bounded(file, document)
                yield _as_json(document)
    except BadOutput:
        raise
    except _UNREADABLE as error:
        raise _no_graph(file, f"invalid YAML: {' '.join(str(error).split())}") from error


def _no_graph(file: str, text: str) -> BadOutput:
    return BadOutput(f"failed to extract DGD from {file}: {text}")


def _graph(file: str, document: Object, name: str) -> Object:
    if later := later_version(document):
        raise _no_graph(file, str(later))
    metadata = document.get("metadata")
    kept = {
        field: value
        for field, value in (metadata if isinstance(metadata, dict) else {}).items()
        if field in ("name", "labels", "annotations") and value
    }
    graph: Object = {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": DynamoGraphDeployment.KIND.name,
        "metadata": {"name": name} | kept,
        "spec": document.get("spec"),
    }
    try:
        read = decode(DynamoGraphDeployment, msgspec.json.encode(graph))
    except (DecodeError, msgspec.MsgspecError, ValueError, OverflowError) as error:
        cause = error.message if isinstance(error, DecodeError) else str(error)
        raise _no_graph(file, f"failed to convert to DynamoGraphDeployment: {cause}") from error
    size = len(msgspec.json.encode(graph))
    if size > _GRAPH_LIMIT_BYTES:
        text = (
            f"it has {size} bytes as JSON (limit {_GRAPH_LIMIT_BYTES}, so that it fits in the "
            "status)"
        )
        raise _no_graph(file, text)
    if not read.spec.services:
        text = "failed to convert to DynamoGraphDeployment: spec.services is empty"
        raise _no_graph(file, text)
    return graph


def _name(document: Object) -> str:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def _bounded(file: str, document: Object) -> None:
    """Reject a document that anchors expand beyond the limits of size or depth."""
    rest: list[tuple[int, object]] = [(1, document)]
    count = 0
    while rest:
        depth, value = rest.pop()
        count += 1
        if count > _NODES_LIMIT:
            raise _no_graph(file, f"more than {_NODES_LIMIT} values")
        if depth > DEPTH_LIMIT:
            raise _no_graph(file, f"nested deeper than {DEPTH_LIMIT} levels")
        match value:
            case dict():
                rest.extend((depth + 1, child) for child in value.values())
            case list():
                rest.extend((depth + 1, child) for child in value)


def _as_json(value: object) -> Any:
    match value:
        case dict():
            return {
                str(key).lower() if isinstance(key, bool) else str(key): _as_json(child)
                for key, child in value.items()
            }
        case list():
            return [_as_json(child) for child in value]
        case str() | bool() | int() | float() | None:
            return value
        case _:
            return str(value)


def _line(value: object) -> str:
    line = " ".join(value.split()) if isinstance(value, str) else ""
    return line if len(line) <= _TEXT_LIMIT else f"{line[: _TEXT_LIMIT - 1]}…"


class _Loader(ShallowLoader):
    """PyYAML's safe reader, which reads dates and times such as 1:30 as text, as Kubernetes does."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _NODES_LIMIT:  # merges of merges grow without end
            raise _unusable(node, f"`<<` expands to more than {_NODES_LIMIT} values")


def _unusable(node: yaml.Node, text: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


def _checked(
    construct: Callable[[object, object], Any], kind: str
) -> Callable[[Any, object], object]:
    """Wrap the constructor of a number or boolean, so that each error names its place."""

    def checked(loader: _Loader, node: Any) -> object:
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        if ":" in text:
            return text  # Kubernetes' reader does not take 1:30 for ninety
        try:
            value = construct(loader, node) if len(text) <= _NUMBER_LIMIT else math.nan
        except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
            value = math.nan
        if not math.isfinite(value) or not (isinstance(value, float) or value in _NUMBERS):
            raise _unusable(
                node, (f"invalid {kind} {text[:_NUMBER_LIMIT]!r} (not accepted by Kubernetes)")
            )
        return value

    return checked


_NUMBERS = range(_SMALLEST, _LARGEST + 1)
_TAG = "tag:yaml.org,2002:"
_UNREADABLE = (
    *(yaml.YAMLError, RecursionError),
    *(ArithmeticError, AttributeError, LookupError, TypeError, ValueError),
)
"""Errors of PyYAML for bad text: its own, and those of constructing a value."""

_Loader.yaml_constructors = yaml.CSafeLoader.yaml_constructors | {
    f"{_TAG}{tag}": _checked(yaml.CSafeLoader.yaml_constructors[f"{_TAG}{tag}"], name)
    for tag, name in (("bool", "boolean"), ("int", "number"), ("float", "number"))
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag != f"{_TAG}timestamp"]
    for first, rules in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
