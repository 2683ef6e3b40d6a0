"""The PodDisruptionBudgets of a graph, one for each service with Deployments, whatever its revisions."""

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.component.objects import (
    object_metadata,
    selected_type,
    service_annotations,
    service_labels,
)
from dynamo_operator.component.render import budget_limit, budget_object
from dynamo_operator.component.service import as_configured
from dynamo_operator.features.decision import Feature
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import is_on_grove
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object


def graph_disruption_budgets(graph: DynamoGraphDeployment, settings: RenderSettings) -> tuple[Object, ...]:
    """Return the budgets of the graph's services."""
    return tuple(
        _budget(graph, key, service, limit)
        for key, service in sorted(graph.spec.services.items())
        if (limit := budget_limit(as_configured(graph, key), settings))
    )


def _budget(graph: DynamoGraphDeployment, key: str, service: ComponentSpec, limit: Object) -> Object:
    name = graph.metadata.name
    selected = {labels.COMPONENT: names.label_value(key), labels.GRAPH: names.label_value(name)}
    metadata = object_metadata(
        graph.metadata.namespace,
        names.component_name(name, key),
        service_labels(graph, service) | selected,
        service_annotations(graph, service),
    )
    return budget_object(metadata, selected | selected_type(service), limit)


BUDGETS = Feature(
    lambda it: (
        not is_on_grove(it.graph)
        and (
            bool(it.settings.disruption_budget_max_unavailable)
            or any(service.disruption_budget is not None for service in it.graph.spec.services.values())
        )
    ),
    render=lambda it: graph_disruption_budgets(it.effective, it.settings),
)
