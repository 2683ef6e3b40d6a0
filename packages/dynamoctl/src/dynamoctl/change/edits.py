"""`dynamoctl scale`, `suspend`, `resume` and `rollout`: each writes one field of one object.

The operator does the rest, as after an edit with kubectl. A write names the uid that was read, and nothing is
written if the object already has the value.
"""

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from cyclopts import CycloptsError

from dynamo_graphs.offline import expanded
from dynamo_operator import labels
from dynamo_operator.component.api import has_adapter, is_under_factor
from dynamo_operator.component.validate import ROLLING
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.replicas import as_configured, base_replicas
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LeaderWorkerSet, PodCliqueSet
from dynamo_operator.shared.conditions import Stated
from dynamoctl.cluster.target import (
    GRAPHS,
    NOUNS,
    STATED,
    Target,
    parse_service,
    service_of,
    target_of,
)
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.options import Where
from dynamoctl.screen import counted
from kube_runtime.client.client import Client
from kube_runtime.commandline import visible
from kube_runtime.errors import Conflict, OperatorError
from kube_runtime.kind import Fields, Object
from kube_runtime.types.kinds import Deployment

_MARKS = {
    labels.PAUSED: ("paused", "rollout resume", "Pausing"),
    labels.SUSPEND: ("suspended", "resume", "Suspending"),
}
"""Annotations that stop the operator: the state of the object, the command that removes it, the verb."""


# A scaling adapter owns the replicas of its service. Otherwise the graph's `spec.replicas`
# multiplies the service's own number.
class Unwritable(OperatorError):
    """The object does not allow the requested change."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A merge patch of one object (None: nothing to change), and a sentence without its full stop."""

    patch: Object | None
    message: str


def adapter_of(
    graph: DynamoGraphDeployment,
    service: str,
    adapters: Iterable[DynamoGraphDeploymentScalingAdapter],
) -> DynamoGraphDeploymentScalingAdapter:
    """The scaling adapter that the operator created for a service; others have no effect.

    Raises:
        Unwritable: there is none yet.
    """
    for adapter in adapters:
        controller = adapter.metadata.controller
        is_of_graph = controller is not None and controller.uid == graph.metadata.uid
        if adapter.metadata.deletion_timestamp:
            continue
        if (
            is_of_graph
            and adapter.spec is not None
            and adapter.spec.dgd_ref.service_name == service
        ):
            return adapter
    raise Unwritable(
        f"the scaling adapter of service {service} of graph {graph.key} does not exist yet; the "
        "operator creates it"
    )


def replicas_by_adapter(adapter: DynamoGraphDeploymentScalingAdapter, replicas: int) -> Edit:
    """Set the replicas on the adapter."""
    before = None if adapter.spec is None else adapter.spec.replicas
    ref = None if adapter.spec is None else adapter.spec.dgd_ref
    place = f"{adapter.metadata.namespace}/"
    service = f"{place}{ref.name}/{ref.service_name}" if ref else f"{place}{adapter.metadata.name}"
    by = f" through scaling adapter {adapter.metadata.name}"
    if before == replicas:
        return Edit(None, f"{service} is already set to {counted(replicas, 'replica')}{by}")
    return Edit({"spec": {"replicas": replicas}}, _scaling(service, before, replicas, by))


def replicas_by_graph(graph: DynamoGraphDeployment, service: str, replicas: int) -> Edit:
    """Set the total replicas of a service in the graph.

    Raises:
        Unwritable: the number is not a multiple of the graph's `spec.replicas`.
    """
    spec = graph.spec.services[service]
    factor = 1 if graph.spec.replicas is None or not is_under_factor(spec) else graph.spec.replicas
    has_number = as_configured(graph, service).replicas is not None
    before = base_replicas(graph, service) * factor
    if before == replicas and (has_number or factor != 1):
        return Edit(None, f"{graph.key}/{service} is already set to {counted(replicas, 'replica')}")
    own, rest = divmod(replicas, factor) if factor else (0, 1)
    if rest:
        raise Unwritable(
            f"spec.replicas of graph {graph.key} is {factor} and multiplies the replicas of "
            f"{service}: {replicas} is not a multiple of {factor}"
        )
    was = before if has_number or factor != 1 else None
    by = "" if factor == 1 else f" ({own} \N{MULTIPLICATION SIGN} spec.replicas {factor})"
    version = {"resourceVersion": graph.metadata.resource_version}
    # Without the version, a service that was removed meanwhile would be created with replicas only.
    patch = {"metadata": version, "spec": {"services": {service: {"replicas": own}}}}
    return Edit(patch, _scaling(f"{graph.key}/{service}", was, replicas, by))


def marked(stated: Stated, key: str, *, is_on: bool) -> Edit:
    """Set an annotation to `true`, or remove it."""
    word, _, verb = _MARKS[key]
    subject = f"{NOUNS[type(stated)]} {stated.key}"
    present = stated.metadata.annotations.get(key)
    value = "true" if is_on else None
    if present == value:
        return Edit(None, f"{subject.capitalize()} is {'already' if is_on else 'not'} {word}")
    patch = {"metadata": {"annotations": {key: value}}}
    return Edit(patch, f"{verb if is_on else 'Resuming'} {subject}")


def restarted(graph: DynamoGraphDeployment, now: datetime) -> Edit:
    """A restart with the time as id; its order stays that of the spec.

    Raises:
        Unwritable: a managed rollout is in progress; webhooks refuse a restart then, too.
    """
    rolling = graph.status.rolling_update
    if rolling is not None and rolling.phase in ROLLING:
        raise Unwritable(
            f"the workers of graph {graph.key} are already being replaced; retry when the rollout "
            "is complete (`dynamoctl rollout status` waits for it)"
        )
    identity = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    message = f"Restarting graph {graph.key} (spec.restart.id {identity})"
    return Edit({"spec": {"restart": {"id": identity}}}, message)


def obstacles(stated: Stated, besides: Collection[str] = ()) -> Iterator[str]:
    """What prevents an edit for now. `besides` are annotations that do not count."""
    noun, name = NOUNS[type(stated)], stated.metadata.name
    kind = type(stated).DEFINITION.short_names[0]
    if stated.metadata.deletion_timestamp:
        yield f"the {noun} {name} is being deleted"
    for key, (word, command, _) in _MARKS.items():
        if key not in besides and stated.metadata.annotations.get(key) == "true":
            yield f"the {noun} {name} is {word}; `dynamoctl {command} {kind}/{name}` ends that"


def _scaling(service: str, before: int | None, replicas: int, by: str) -> str:
    origin = "" if before is None else f"from {before} "
    return f"Scaling {service} {origin}to {counted(replicas, 'replica')}{by}"


_TRIES = 5
"""Most attempts to read a graph and patch it when a conflicting write came between."""

MANAGER = "dynamoctl"
"""The field manager of all writes of this program."""


async def scale(name: str, replicas: int, where: Where) -> None:
    """Set the replicas of a service: `name` is GRAPH/SERVICE.

    Raises: CycloptsError; OperatorError.
    """
    graph, service = parse_service(name)
    if not service:
        raise CycloptsError(
            f'invalid target "{name}" (expected GRAPH/SERVICE, for example chat/Decode)'
        )
    async with target_of(graph, where, GRAPHS) as at:
        done = await scaled(at, service, replicas)
    print_edit(done.said, done.obstacles)


async def suspend(name: str, where: Where, *, is_on: bool) -> None:
    """Suspend a graph, or resume it.

    Raises: CycloptsError; OperatorError.
    """
    await _mark(name, where, GRAPHS, labels.SUSPEND, is_on=is_on)


async def pause(name: str, where: Where, *, is_on: bool) -> None:
    """Pause an object of our kinds, or resume it.

    Raises: CycloptsError; OperatorError.
    """
    await _mark(name, where, STATED, labels.PAUSED, is_on=is_on)


async def restart(name: str, where: Where) -> None:
    """Restart all services of a graph.

    Raises: CycloptsError; OperatorError.
    """
    async with target_of(name, where, GRAPHS) as at:
        graph = await at.get()
        edit = restarted(graph, datetime.now(UTC))
        await _fulfil(at.reading.client, graph, edit)
    print_edit(edit.message, obstacles(graph))


@dataclass(frozen=True, slots=True)
class Scaled:
    """The change, as a sentence without its full stop, and what prevents it for now."""

    said: str
    obstacles: tuple[str, ...]


async def scaled(at: Target[DynamoGraphDeployment], service: str, replicas: int) -> Scaled:
    """Set the replicas of a service, of its scaling adapter if it has one.

    Raises:
        Missing: there is no such graph or service.
        Unwritable: the number is not a multiple of the graph's `spec.replicas`.
        OperatorError: the API server refuses it.
    """
    for tries_left in reversed(range(_TRIES)):
        graph = await at.get()
        try:
            return await _scaled_as_read(at.reading, graph, service, replicas)
        except Conflict:
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


async def _scaled_as_read(
    reading: Reading, graph: DynamoGraphDeployment, service: str, replicas: int
) -> Scaled:
    if not has_adapter(service_of(graph, service)):
        edit = replicas_by_graph(graph, service, replicas)
        await _fulfil(reading.client, graph, edit)
        return Scaled(edit.message, tuple(obstacles(graph)))
    kind, namespace = DynamoGraphDeploymentScalingAdapter, graph.metadata.namespace
    adapter = adapter_of(graph, service, await reading.all(kind, namespace=namespace))
    edit = replicas_by_adapter(adapter, replicas)
    await _fulfil(reading.client, adapter, edit)
    return Scaled(edit.message, (*obstacles(graph), *obstacles(adapter)))


async def _mark(
    name: str, where: Where, types: tuple[type[Stated], ...], key: str, *, is_on: bool
) -> None:
    async with target_of(name, where, types) as at:
        stated = await at.get()
        edit = marked(stated, key, is_on=is_on)
        await _fulfil(at.reading.client, stated, edit)
    besides = (key,) if key == labels.SUSPEND else (key, labels.SUSPEND)
    print_edit(edit.message, obstacles(stated, besides))


async def _fulfil(client: Client, stated: Stated, edit: Edit) -> None:
    """Write the edit, unless there is nothing to change."""
    if edit.patch is not None:
        uid = stated.metadata.uid
        await client.merge_patch(
            type(stated), stated.key, edit.patch, uid=uid, field_manager=MANAGER
        )


def print_edit(done: str, blocked_by: Iterable[str]) -> None:
    """Print the change, a sentence without its full stop, and on stderr what prevents it."""
    print(visible(f"{done}."))
    for obstacle in blocked_by:
        print(visible(f"note: {obstacle}"), file=sys.stderr)


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
