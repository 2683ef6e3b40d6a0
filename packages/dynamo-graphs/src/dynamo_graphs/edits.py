"""Change one field of one object: replicas, pauses, restarts.

The operator does the rest, as after an edit with kubectl. A write names the uid that was read, and nothing is
written if the object already has the value.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from dynamo_graphs.ages import counted
from dynamo_graphs.reader import MANAGER, NOUNS, Reading, S, Target, retry_on_conflict, service_of
from dynamo_operator import labels
from dynamo_operator.component.api import has_adapter, is_under_factor
from dynamo_operator.component.service import as_configured, base_replicas
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.validate import ROLLING
from dynamo_operator.shared.conditions import Stated
from kube_runtime.errors import OperatorError
from kube_runtime.types.meta import Object

_MARKS = {
    labels.PAUSED: ("paused", "rollout resume", "Pausing"),
    labels.SUSPEND: ("suspended", "resume", "Suspending"),
}
"""Annotations that stop the operator: the state of the object, the command that removes it, the verb."""


class Unwritable(OperatorError):
    """The object does not allow the requested change."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A merge patch of one object (None: nothing to change), and a sentence without its full stop."""

    patch: Object | None
    message: str


def adapter_of(
    graph: DynamoGraphDeployment, service: str, adapters: Iterable[DynamoGraphDeploymentScalingAdapter]
) -> DynamoGraphDeploymentScalingAdapter:
    """The scaling adapter that the operator created for a service; others have no effect.

    Raises: Unwritable if there is none yet.
    """
    for adapter in adapters:
        controller = adapter.metadata.controller
        is_of_graph = controller is not None and controller.uid == graph.metadata.uid
        if adapter.metadata.deletion_timestamp or not is_of_graph or adapter.spec is None:
            continue
        if adapter.spec.dgd_ref.service_name == service:
            return adapter
    raise Unwritable(
        f"the scaling adapter of service {service} of graph {graph.key} does not exist yet; the "
        "operator creates it"
    )


def replicas_by_adapter(adapter: DynamoGraphDeploymentScalingAdapter, replicas: int) -> Edit:
    """Set the replicas on the adapter."""
    spec = adapter.spec
    before = None if spec is None else spec.replicas
    name = f"{spec.dgd_ref.name}/{spec.dgd_ref.service_name}" if spec else adapter.metadata.name
    service, by = f"{adapter.metadata.namespace}/{name}", f" through scaling adapter {adapter.metadata.name}"
    if before == replicas:
        return Edit(None, f"{service} is already set to {counted(replicas, 'replica')}{by}")
    return Edit({"spec": {"replicas": replicas}}, _scaling(service, before, replicas, by))


def replicas_by_graph(graph: DynamoGraphDeployment, service: str, replicas: int) -> Edit:
    """Set the total replicas of a service in the graph.

    Raises: Unwritable if the number is not a multiple of the graph's `spec.replicas`.
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

    Raises: Unwritable if a managed rollout is in progress; webhooks refuse a restart then, too.
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
        if key not in besides and stated.metadata.is_true(key):
            yield f"the {noun} {name} is {word}; `dynamoctl {command} {kind}/{name}` ends that"


def _scaling(service: str, before: int | None, replicas: int, by: str) -> str:
    origin = "" if before is None else f"from {before} "
    return f"Scaling {service} {origin}to {counted(replicas, 'replica')}{by}"


@dataclass(frozen=True, slots=True)
class Edited:
    """The change, as a sentence without its full stop, and what prevents it for now."""

    message: str
    obstacles: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join((self.message, *(f"note: {obstacle}" for obstacle in self.obstacles)))


# A scaling adapter owns the replicas of its service. Otherwise the graph's `spec.replicas`
# multiplies the service's own number.
async def scaled(at: Target[DynamoGraphDeployment], service: str, replicas: int) -> Edited:
    """Set the replicas of a service, of its scaling adapter if it has one."""
    return await retry_on_conflict(lambda: _scaled(at, service, replicas))


async def _scaled(at: Target[DynamoGraphDeployment], service: str, replicas: int) -> Edited:
    graph = await at.get()
    if not has_adapter(service_of(graph, service)):
        return await _edited(at.reading, graph, replicas_by_graph(graph, service, replicas))
    adapters = await at.reading.all(DynamoGraphDeploymentScalingAdapter, namespace=graph.metadata.namespace)
    adapter = adapter_of(graph, service, adapters)
    done = await _edited(at.reading, adapter, replicas_by_adapter(adapter, replicas))
    return Edited(done.message, (*obstacles(graph), *done.obstacles))


async def mark(at: Target[S], key: str, *, is_on: bool) -> Edited:
    """Set an annotation that stops the operator, `labels.PAUSED` or `labels.SUSPEND`, or remove it."""
    stated = await at.get()
    besides = (key,) if key == labels.SUSPEND else (key, labels.SUSPEND)
    return await _edited(at.reading, stated, marked(stated, key, is_on=is_on), besides)


async def restart(at: Target[DynamoGraphDeployment]) -> Edited:
    """Restart all services of a graph."""
    graph = await at.get()
    return await _edited(at.reading, graph, restarted(graph, datetime.now(UTC)))


async def _edited(reading: Reading, stated: Stated, edit: Edit, besides: Collection[str] = ()) -> Edited:
    services: Object = ((edit.patch or {}).get("spec") or {}).get("services") or {}
    if services and type(stated).KIND in reading.client.translations:
        # A list in the stored version, of which a merge patch would replace all entries.
        ((name, fields),) = services.items()
        ((field, value),) = fields.items()
        await reading.client.set_field(
            stated, ("spec", "services", name, field), value, field_manager=MANAGER
        )
    elif edit.patch is not None:
        await reading.client.merge_patch(
            type(stated), stated.key, edit.patch, uid=stated.metadata.uid, field_manager=MANAGER
        )
    return Edited(edit.message, tuple(obstacles(stated, besides)))
