"""Which scaling adapters a graph should have, and the replicas that they set.

The operator creates an adapter with the replicas that the service has. From then on `spec.replicas`
belongs to the client that scales.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from dynamo_operator import labels, names
from dynamo_operator.component.api import has_adapter
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.service import Observed, base_replicas
from dynamo_operator.shared.conditions import is_paused
from kube_runtime.apply.result import controls
from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import Object, condition

Adapters: TypeAlias = Mapping[str, Adapter]
"""By name: those that a graph controls, and foreign ones that occupy a name that it needs."""


@dataclass(frozen=True, slots=True)
class AdapterInputs:
    """The adapters of a graph: `present` are those that it controls or whose names it needs.

    `unreadable` cannot be decoded. `refused` are names whose creation the API server refused a moment ago.
    """

    present: Adapters = field(default_factory=dict)
    unreadable: Mapping[str, DecodeError] = field(default_factory=dict[str, DecodeError])
    refused: frozenset[str] = frozenset()

    @property
    def not_created(self) -> frozenset[str]:
        """The names of adapters that cannot be created or read now."""
        return self.refused.union(self.unreadable)


@dataclass(frozen=True, slots=True)
class AdapterPlan:
    """`desired` should exist, `orphans` should be deleted; `replicas` are what adapters set, by service."""

    desired: tuple[Object, ...] = ()
    orphans: tuple[Adapter, ...] = ()
    replicas: Mapping[str, int] = field(default_factory=dict[str, int])


def plan_adapters(
    graph: DynamoGraphDeployment,
    observed: Observed,
    present: Adapters,
    not_created: Collection[str] = (),
) -> AdapterPlan:
    """Plan the adapters of a graph. `not_created` are names that cannot be created or read now.

    `replicas` omits services whose adapter is paused or cannot be created: they keep the number in the spec.
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
            number = first  # created without a spec, which this reconcile writes
        else:
            number = adapter_replicas(adapter, base_replicas(graph, key))
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


def adapter_replicas(adapter: Adapter, own: int) -> int | None:
    """The replicas of a service with this adapter and `own` replicas in the graph; None if it sets none.

    While the graph has the number that the adapter's controller last wrote, that number counts: a newer
    one of the adapter reaches the workload through the graph, so that several in a row become one
    change. Replicas that another client wrote to the graph lose against the adapter's.
    """
    if adapter.spec is None or adapter.metadata.deletion_timestamp or is_paused(adapter):
        return None
    return own if own == adapter.status.desired_replicas else adapter.spec.replicas


def _first_replicas(graph: DynamoGraphDeployment, key: str, observed: Observed) -> int:
    """The present replicas of the service, so that creating the adapter changes nothing.

    The graph's factor does not apply to services with an adapter, but a service that it has scaled keeps
    its size.
    """
    live = observed.get(key)
    suspended = condition(graph.status.conditions, "Suspended")
    if live is None or not live.exists or (suspended and suspended.status != "False"):
        return base_replicas(graph, key)
    return live.desired


def _adapter_object(graph: DynamoGraphDeployment, key: str, replicas: int) -> Object:
    """The adapter with its first replicas, without owner references."""
    namespace, name = graph.metadata.namespace, graph.metadata.name
    return Adapter.KIND.manifest(
        {
            "name": names.component_name(name, key),
            "namespace": namespace,
            "labels": {
                labels.GRAPH: names.label_value(name),
                labels.COMPONENT: names.label_value(key),
            },
        },
        spec={"replicas": replicas, "dgdRef": {"name": name, "serviceName": key}},
    )
