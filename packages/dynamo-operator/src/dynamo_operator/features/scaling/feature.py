"""Which scaling adapters a graph should have, and the replicas that they set.

The operator creates an adapter with the replicas that the service has. From then on `spec.replicas`
belongs to the client that scales.
"""

from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import has_adapter, is_worker
from dynamo_operator.component.service import Observed, base_replicas, most_replicas
from dynamo_operator.features.decision import AdapterInputs, AdapterPlan, Feature
from dynamo_operator.features.rollouts.revisions import Revisions
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import SUSPENDED
from kube_runtime.apply.result import controls
from kube_runtime.types.meta import Object, condition


def plan_adapters(
    graph: DynamoGraphDeployment, observed: Observed, inputs: AdapterInputs, revisions: Revisions
) -> AdapterPlan:
    """Plan the adapters of a graph.

    `replicas` omits services whose adapter is paused or cannot be created: they keep the number in the spec.
    """
    present, not_created = inputs.present, inputs.refused.union(inputs.unreadable)
    desired: list[Object] = []
    replicas: dict[str, int] = {}
    for key, service in sorted(graph.spec.services.items()):
        if not has_adapter(service):
            continue
        first = _first_replicas(graph, key, observed, revisions)
        desired.append(_adapter_object(graph, key, first))
        name = names.component_name(graph.metadata.name, key)
        adapter = present.get(name)
        if adapter is None:
            number = None if name in not_created else first
        elif not controls(graph, adapter):
            number = None
        elif adapter.spec is None and not adapter.metadata.deletion_timestamp:
            number = first  # created without a spec, which this reconcile writes
        else:
            number = _replicas_by(adapter, base_replicas(graph, key), most_replicas(service))
        if number is not None:
            replicas[key] = number
    needed = set(adapter_names(graph))
    orphans = (
        adapter
        for name, adapter in present.items()
        if name not in needed and controls(graph, adapter) and not adapter.metadata.deletion_timestamp
    )
    return AdapterPlan(tuple(desired), tuple(orphans), replicas)


def adapter_names(graph: DynamoGraphDeployment) -> tuple[str, ...]:
    """The names of the adapters that a graph should have."""
    return tuple(
        names.component_name(graph.metadata.name, key)
        for key, service in sorted(graph.spec.services.items())
        if has_adapter(service)
    )


def _replicas_by(adapter: Adapter, own: int, most: int) -> int | None:
    if adapter.spec is None or adapter.metadata.deletion_timestamp or adapter.metadata.is_true(labels.PAUSED):
        return None
    # While the graph has the number that the adapter's controller last wrote, that number counts: a newer one
    # of the adapter reaches the workload through the graph, so that several in a row become one change.
    # Replicas that another client wrote to the graph lose against the adapter's.
    is_older = own == adapter.status.desired_replicas or adapter.spec.replicas > most
    return own if is_older else adapter.spec.replicas


def _first_replicas(graph: DynamoGraphDeployment, key: str, observed: Observed, revisions: Revisions) -> int:
    # The present ones, so that creating the adapter changes nothing, although the factor of the graph, which
    # may have set them, does not apply to a service with an adapter.
    live, base, factor = observed.get(key), base_replicas(graph, key), graph.spec.replicas
    suspended = condition(graph.status.conditions, SUSPENDED)
    # The condition is written after the services were scaled to zero.
    is_suspended = graph.metadata.is_true(labels.SUSPEND) or (suspended and suspended.status != "False")
    if live is None or not live.exists or (is_suspended and not live.desired):
        return base
    if not live.has_older:
        return live.desired
    # In a rollout, those that its new component is to reach: if that has an adapter, one was deleted, and the
    # number in the graph is a copy of its own.
    members = (*revisions.old, *revisions.new, *revisions.successors)
    has_had_one = [has_adapter(member.component.spec) for member in members if member.service == key][-1:]
    if factor is None or not is_worker(graph.spec.services[key]) or any(has_had_one):
        return base
    return base * factor


def _adapter_object(graph: DynamoGraphDeployment, key: str, replicas: int) -> Object:
    namespace, name = graph.metadata.namespace, graph.metadata.name
    return Adapter.KIND.manifest(
        {
            "name": names.component_name(name, key),
            "namespace": namespace,
            "labels": {labels.GRAPH: names.label_value(name), labels.COMPONENT: names.label_value(key)},
        },
        spec={"replicas": replicas, "dgdRef": {"name": name, "serviceName": key}},
    )


ADAPTERS = Feature(
    lambda it: bool(it.inputs.adapters.present) or any(map(has_adapter, it.graph.spec.services.values())),
    plan=lambda it: replace(
        it, adapters=plan_adapters(it.graph, it.inputs.services, it.inputs.adapters, it.revisions)
    ),
)
