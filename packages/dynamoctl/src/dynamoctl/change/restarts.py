"""The effects of a changed graph on its pods: both specs are rendered and compared. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dynamo_graphs.api import labels
from dynamo_graphs.facts import Facts
from dynamo_graphs.offline import expanded
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodCliqueSet
from dynamo_graphs.types.optional_apis import LeaderWorkerSet
from kube_runtime.kind import Fields, Object
from kube_runtime.types.apps import Deployment

_MOST_PATHS = 3
"""Changed fields that a line names."""

_TEMPLATE = {Deployment.KIND.name: "template", LeaderWorkerSet.KIND.name: "leaderWorkerTemplate"}


@dataclass(frozen=True, slots=True)
class Workload:
    """The pod template and the replicas of one service; None if they are unknown."""

    template: Object
    replicas: int | None


@dataclass(frozen=True, slots=True)
class Effect:
    """An effect on one service; `verb` is `create`, `delete`, `restart` or `scale`."""

    service: str
    verb: str
    text: str


def workloads(graph: Object, facts: Facts, settings: RenderSettings) -> dict[str, Workload]:
    """The workloads that the operator would create for a graph, by service.

    Raises: ValueError with the problems of an invalid graph.
    """
    expansion = expanded(graph, facts, settings)
    if expansion.problems:
        raise ValueError("; ".join(map(str, expansion.problems)))
    by_service: dict[str, Workload] = {}
    for service, workload in _workloads(expansion.objects):
        first = by_service.setdefault(service, workload)
        if first is not workload:  # a service on several nodes has a workload for each replica
            total = (first.replicas or 0) + (workload.replicas or 0)
            by_service[service] = Workload(first.template, total)
    return by_service


def effects(before: Mapping[str, Workload], after: Mapping[str, Workload]) -> list[Effect]:
    """The effects on each service, by name."""
    return [
        effect
        for service in sorted({*before, *after})
        for effect in _effects(service, before.get(service), after.get(service))
    ]


def differences(before: object, after: object, path: str = "") -> Iterator[str]:
    """The paths that differ, each with both values. List entries are matched by name."""
    if before == after:
        return
    left, right = _by_name(before), _by_name(after)
    if left is None or right is None:
        yield f"{path}: {_short(before)} → {_short(after)}"
        return
    for key in dict.fromkeys((*left, *right)):
        yield from differences(left.get(key), right.get(key), f"{path}.{key}".lstrip("."))


def _effects(service: str, before: Workload | None, after: Workload | None) -> Iterator[Effect]:
    if before is None and after is not None:
        yield Effect(service, "create", _pods(after))
    elif before is not None and after is None:
        yield Effect(service, "delete", _pods(before))
    elif before is not None and after is not None:
        if paths := sorted(differences(before.template, after.template), key=_is_bookkeeping):
            more = len(paths) - _MOST_PATHS
            text = "; ".join(paths[:_MOST_PATHS]) + (f"; and {more} more" if more > 0 else "")
            yield Effect(service, "restart", f"{_pods(before)}: {text}")
        if before.replicas != after.replicas:
            yield Effect(service, "scale", f"{before.replicas} → {after.replicas}")


def _workloads(objects: tuple[Object, ...]) -> Iterator[tuple[str, Workload]]:
    for rendered in objects:
        kind, spec = rendered["kind"], rendered.get("spec", {})
        if field := _TEMPLATE.get(kind):
            service = rendered["metadata"]["labels"].get(
                labels.COMPONENT, rendered["metadata"]["name"]
            )
            yield service, Workload(spec[field], spec.get("replicas"))
        elif kind == PodCliqueSet.KIND.name:
            for clique in spec["template"]["cliques"]:
                body = clique["spec"]
                template = {"metadata": {"labels": clique.get("labels")}, "spec": body["podSpec"]}
                yield clique["name"], Workload(template, body.get("replicas"))


def _by_name(value: object) -> Fields | None:
    """The entries of a map, or of a list whose entries have names; None for any other value."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and all(isinstance(it, dict) and "name" in it for it in value):
        return {str(entry["name"]): entry for entry in value}
    return None


def _is_bookkeeping(path: str) -> bool:
    """Whether labels or annotations differ, which follows from other changes and comes last."""
    return "metadata." in path.partition(":")[0]


def _pods(workload: Workload) -> str:
    count = workload.replicas
    return "pods" if count is None else f"{count} {'replica' if count == 1 else 'replicas'}"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"  # noqa: PLR2004 - half a line of a terminal
