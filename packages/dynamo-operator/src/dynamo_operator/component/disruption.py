"""PodDisruptionBudgets of services that run as Deployments.

A service may run in several revisions at once, each a component of its own, and a drain must spare the
service as a whole. So in a graph the budget belongs to the graph, and its selector omits the Dynamo
namespace. Multinode services have none, since losing any pod of a group stops the group.
"""

from dynamo_operator import labels, names
from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.component.objects import annotations, component_labels, object_metadata, user_labels
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import PodDisruptionBudget
from kube_runtime.types.meta import Object


def component_disruption_budgets(
    component: DynamoComponentDeployment, settings: RenderSettings
) -> tuple[Object, ...]:
    """Return the budget of a component without a graph, if it has one."""
    spec, name = component.spec, names.workload_name(component.metadata.name)
    if not (limit := budget_limit(spec, settings)):
        return ()
    every = user_labels(component) | component_labels(component, "")
    metadata = object_metadata(component.metadata.namespace, name, every, annotations(spec))
    return (budget_object(metadata, {labels.SELECTOR: name}, limit),)


def budget_limit(spec: ComponentSpec, settings: RenderSettings) -> Object:
    """The limit of the budget of a service or component; empty if it has none."""
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


def budget_object(metadata: Object, selected: dict[str, str], limit: Object) -> Object:
    """The PodDisruptionBudget of the pods with these labels."""
    return PodDisruptionBudget.KIND.manifest(
        metadata,
        spec={
            **limit,
            "selector": {"matchLabels": selected},
            # A pod that is not ready serves no requests; it must not block a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )
