"""What `dynamoctl scale`, `suspend`, `resume` and `rollout` write. Pure: objects in, patch and sentence out.

The hard part is to write a number where it counts: it belongs to the service's scaling adapter where there is
one; else to the service, whose own number the graph's `spec.replicas` multiplies.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from dynamo_operator.api import labels
from dynamo_operator.api.component import ComponentSpec
from dynamo_operator.api.deployment_config import as_configured, base_replicas
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.roles import is_under_factor
from dynamo_operator.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.cli.explanation import NOUNS
from dynamo_operator.kube.errors import OperatorError
from dynamo_operator.kube.kind import Object
from dynamo_operator.status.standing import Stated
from dynamo_operator.validation.syntax import nearest
from dynamo_operator.validation.update import ROLLING

_MARKS = {
    labels.PAUSED: ("paused", "rollout resume"),
    labels.SUSPEND: ("suspended", "resume"),
}
"""Annotations that keep the operator from work: what the object is then, and the command that ends it."""


class Unwritable(OperatorError):
    """What was asked for cannot be written on this object."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A merge patch of one object, and what it means. None means: it is so already."""

    patch: Object | None
    said: str


def service_of(graph: DynamoGraphDeployment, name: str) -> ComponentSpec:
    """The service of that name.

    Raises:
        Unwritable: the graph has none; the message names those that it has.
    """
    services = graph.spec.services
    if name not in services:
        known = f"; it has {', '.join(sorted(services))}" if services else ""
        hint = nearest(name, services)
        raise Unwritable(f"the graph {graph.key} has no service {name}{hint or known}")
    return services[name]


def adapter_of(
    graph: DynamoGraphDeployment,
    service: str,
    adapters: Iterable[DynamoGraphDeploymentScalingAdapter],
) -> DynamoGraphDeploymentScalingAdapter:
    """The scaling adapter of a service that the operator made; one that somebody else made does nothing.

    Raises:
        Unwritable: there is none yet.
    """
    for each in adapters:
        controller = each.metadata.controller
        is_of_graph = controller is not None and controller.uid == graph.metadata.uid
        if each.metadata.deletion_timestamp:
            continue
        if is_of_graph and each.spec is not None and each.spec.dgd_ref.service_name == service:
            return each
    raise Unwritable(
        f"service {service} of the graph {graph.key} is scaled by a scaling adapter, which is not there "
        "yet; the operator makes it"
    )


def replicas_by_adapter(adapter: DynamoGraphDeploymentScalingAdapter, replicas: int) -> Wish:
    """So many replicas, asked of the adapter."""
    before = None if adapter.spec is None else adapter.spec.replicas
    by = f"by its scaling adapter {adapter.metadata.name}"
    if before == replicas:
        return Wish(None, f"is already to have {_count(replicas)}, {by}")
    return Wish(
        {"spec": {"replicas": replicas}}, f"is to have {_count(replicas)}, {before} before, {by}"
    )


def replicas_by_graph(graph: DynamoGraphDeployment, service: str, replicas: int) -> Wish:
    """So many replicas in all, asked of the graph.

    Raises:
        Unwritable: the graph's factor makes no such number.
    """
    found = graph.spec.services[service]
    factor = 1 if graph.spec.replicas is None or not is_under_factor(found) else graph.spec.replicas
    has_number = as_configured(graph, service).replicas is not None
    before = base_replicas(graph, service) * factor
    if before == replicas and (has_number or factor != 1):
        return Wish(None, f"is already to have {_count(replicas)}")
    own, rest = divmod(replicas, factor) if factor else (0, 1)
    if rest:
        raise Unwritable(
            f"spec.replicas of the graph {graph.key} is {factor}, and multiplies the replicas of {service}: "
            f"{replicas} is no multiple of {factor}"
        )
    was = before if has_number or factor != 1 else "no number"
    by = "" if factor == 1 else f": {own} times spec.replicas, which is {factor}"
    version = {"resourceVersion": graph.metadata.resource_version}
    # The version keeps a service that is gone by now from being made again, of nothing but a number.
    patch = {"metadata": version, "spec": {"services": {service: {"replicas": own}}}}
    return Wish(patch, f"is to have {_count(replicas)}, {was} before{by}")


def marked(stated: Stated, key: str, *, is_on: bool) -> Wish:
    """The annotation with the value `true`, or no such annotation."""
    word, _ = _MARKS[key]
    present = stated.metadata.annotations.get(key)
    wanted = "true" if is_on else None
    if present == wanted:
        return Wish(None, f"is {'already' if is_on else 'not'} {word}")
    patch = {"metadata": {"annotations": {key: wanted}}}
    return Wish(patch, f"is to be {word}" if is_on else f"is no longer to be {word}")


def restarted(graph: DynamoGraphDeployment, now: datetime) -> Wish:
    """A restart whose id is the time; the order of the one before stays.

    Raises:
        Unwritable: a managed rollout is under way; webhooks, where there are any, refuse it as well.
    """
    rolling = graph.status.rolling_update
    if rolling is not None and rolling.phase in ROLLING:
        raise Unwritable(
            f"the workers of the graph {graph.key} are being replaced anyway; ask again when the rollout is "
            "complete, for which `dynamoctl rollout status` waits"
        )
    identity = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Wish(
        {"spec": {"restart": {"id": identity}}}, f"is to restart (spec.restart.id {identity})"
    )


def obstacles(stated: Stated, besides: Collection[str] = ()) -> Iterator[str]:
    """Why nothing will come of a wish for now. `besides` are annotations that do not count."""
    noun, name = NOUNS[type(stated)], stated.metadata.name
    kind = type(stated).DEFINITION.short_names[0]
    if stated.metadata.deletion_timestamp:
        yield f"the {noun} {name} is being deleted"
    for key, (word, command) in _MARKS.items():
        if key not in besides and stated.metadata.annotations.get(key) == "true":
            yield f"the {noun} {name} is {word}; `dynamoctl {command} {kind}/{name}` ends that"


def _count(replicas: int) -> str:
    return f"{replicas} replica{'' if replicas == 1 else 's'}"
