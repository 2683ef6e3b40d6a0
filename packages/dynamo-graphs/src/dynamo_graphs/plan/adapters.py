"""Which scaling adapters a graph should have, and the replicas that they ask for.

The operator never owns an adapter's replicas: an adapter starts with the replicas that the service has, and
from then on `spec.replicas` belongs to the client that scales.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.api.component import has_adapter
from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.plan.replicas import Observed
from kube_runtime.apply.result import controls
from kube_runtime.kind import Object
from kube_runtime.types.meta import condition

Adapters: TypeAlias = Mapping[str, DynamoGraphDeploymentScalingAdapter]
"""By name: those that a graph controls, and those of others that have a name that it needs."""


@dataclass(frozen=True, slots=True)
class AdapterPlan:
    """`desired` should exist, `orphans` should not; `replicas` are what adapters ask for, by service."""

    desired: tuple[Object, ...] = ()
    orphans: tuple[DynamoGraphDeploymentScalingAdapter, ...] = ()
    replicas: Mapping[str, int] = field(default_factory=dict[str, int])


def plan_adapters(
    graph: DynamoGraphDeployment,
    observed: Observed,
    present: Adapters,
    not_created: Collection[str] = (),
) -> AdapterPlan:
    """The adapters of a graph. `not_created` are names that cannot be created or read now.

    A service whose adapter is paused, or cannot be created, is not in `replicas`: its own number counts.
    """
    desired: list[Object] = []
    replicas: dict[str, int] = {}
    for key, service in sorted(graph.spec.services.items()):
        if not has_adapter(service):
            continue
        first = _first_replicas(graph, key, observed)
        desired.append(_adapter_object(graph, key, first))
        name = names.component_name(graph.metadata.name, key)
        adapter = present.get(name)
        if adapter is None:
            number = None if name in not_created else first
        elif not controls(graph, adapter):
            number = None
        elif adapter.spec is None and not adapter.metadata.deletion_timestamp:
            number = first  # its spec is written with the others
        else:
            number = adapter_replicas(adapter, base_replicas(graph, key))
        if number is not None:
            replicas[key] = number
    needed = set(adapter_names(graph))
    orphans = (
        adapter
        for name, adapter in present.items()
        if name not in needed
        and controls(graph, adapter)
        and not adapter.metadata.deletion_timestamp
    )
    return AdapterPlan(tuple(desired), tuple(orphans), replicas)


def adapter_names(graph: DynamoGraphDeployment) -> tuple[str, ...]:
    """The names of the adapters that a graph should have."""
    return tuple(
        names.component_name(graph.metadata.name, key)
        for key, service in sorted(graph.spec.services.items())
        if has_adapter(service)
    )


def adapter_replicas(adapter: DynamoGraphDeploymentScalingAdapter, own: int) -> int | None:
    """The replicas that a service shall have that has this adapter and says `own` in the graph.

    A number that is not yet in the graph waits for it, so that several in a row become one change of the
    workload. But replicas that another client set in the graph never pass for ours.
    None means: the adapter has no say.
    """
    if adapter.spec is None or adapter.metadata.deletion_timestamp or is_paused(adapter):
        return None
    return own if own == adapter.status.desired_replicas else adapter.spec.replicas


def _first_replicas(graph: DynamoGraphDeployment, key: str, observed: Observed) -> int:
    """What the service has, so that creating the adapter changes nothing.

    The graph's factor does not count for services with an adapter; a service that has grown by it stays so.
    """
    live = observed.get(key)
    suspended = condition(graph.status.conditions, "Suspended")
    if live is None or not live.exists or (suspended and suspended.status != "False"):
        return base_replicas(graph, key)
    return live.desired


def _adapter_object(graph: DynamoGraphDeployment, key: str, replicas: int) -> Object:
    """The adapter, without owner references, with the replicas that it starts with."""
    namespace, name = graph.metadata.namespace, graph.metadata.name
    return {
        "apiVersion": DynamoGraphDeploymentScalingAdapter.KIND.api_version,
        "kind": DynamoGraphDeploymentScalingAdapter.KIND.name,
        "metadata": {
            "name": names.component_name(name, key),
            "namespace": namespace,
            "labels": {
                labels.GRAPH: names.label_value(name),
                labels.COMPONENT: names.label_value(key),
            },
        },
        "spec": {"replicas": replicas, "dgdRef": {"name": name, "serviceName": key}},
    }
