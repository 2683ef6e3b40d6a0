"""PodDisruptionBudgets of services that run as Deployments.

A service may run in several revisions at once, each a component of its own, and a drain must spare the
service as a whole. So in a graph the budget belongs to the graph, and its selector omits the Dynamo
namespace. Multinode services have none, since losing any pod of a group stops the group.
"""

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.component.objects import (
    annotations,
    component_labels,
    object_metadata,
    service_annotations,
    service_labels,
    user_labels,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.service import as_configured
from dynamo_operator.names import is_on_grove
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import PodDisruptionBudget
from kube_runtime.types.meta import Object


def graph_disruption_budgets(graph: DynamoGraphDeployment, settings: RenderSettings) -> tuple[Object, ...]:
    """Return the budgets of the graph's services."""
    if is_on_grove(graph):
        return ()
    return tuple(
        _graphs(graph, key, service, bound)
        for key, service in sorted(graph.spec.services.items())
        if (bound := _bound(as_configured(graph, key), settings))
    )


def component_disruption_budgets(
    component: DynamoComponentDeployment, settings: RenderSettings
) -> tuple[Object, ...]:
    """Return the budget of a component without a graph, if it has one."""
    spec, name = component.spec, names.workload_name(component.metadata.name)
    if not (bound := _bound(spec, settings)):
        return ()
    every = user_labels(component) | component_labels(component, "")
    metadata = object_metadata(component.metadata.namespace, name, every, annotations(spec))
    return (_budget(metadata, {labels.SELECTOR: name}, bound),)


def _graphs(graph: DynamoGraphDeployment, key: str, service: ComponentSpec, bound: Object) -> Object:
    name = graph.metadata.name
    selected = {labels.COMPONENT: names.label_value(key), labels.GRAPH: names.label_value(name)}
    metadata = object_metadata(
        graph.metadata.namespace,
        names.component_name(name, key),
        service_labels(graph, service) | selected,
        service_annotations(graph, service),
    )
    if service.component_type:
        selected = {**selected, labels.COMPONENT_TYPE: service.component_type}
    return _budget(metadata, selected, bound)


def _bound(spec: ComponentSpec, settings: RenderSettings) -> Object:
    if spec.nodes > 1:
        return {}
    if (budget := spec.disruption_budget) is not None:
        bounds = {"minAvailable": budget.min_available, "maxUnavailable": budget.max_unavailable}
        return {name: _amount(bound) for name, bound in bounds.items() if bound is not None}
    default = settings.disruption_budget_max_unavailable
    # Only for several replicas: a budget for one pod would block every drain.
    if not default or (spec.replicas or 0) <= 1:
        return {}
    return {"maxUnavailable": _amount(default)}


def _amount(bound: int | str) -> int | str:
    # The API server reads a text as a percentage.
    return int(bound) if isinstance(bound, str) and bound.isdecimal() else bound


def _budget(metadata: Object, selected: dict[str, str], bound: Object) -> Object:
    return PodDisruptionBudget.KIND.manifest(
        metadata,
        spec={
            **bound,
            "selector": {"matchLabels": selected},
            # A pod that is not ready serves no requests; it must not block a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )
