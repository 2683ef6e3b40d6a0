"""The objects of one component: its Services, its Ingress, its workload."""

from collections.abc import Sequence

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.disruption import component_disruption_budgets
from dynamo_graphs.render.leader_wait import wait_config_maps
from dynamo_graphs.render.network import ingresses, model_services, services, virtual_services
from dynamo_graphs.render.objects import Concatenated, canonical
from dynamo_graphs.render.plan import component_plan
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object


def component_objects(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> Sequence[Object]:
    """The objects that the component controls, without owner references, in order of creation."""
    return Concatenated(component_parts(component, facts, settings))


def component_parts(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Sequence[Object], Sequence[Object]]:
    """The same in two parts: what is around the workloads, and these, rendered when they are read."""
    plan = component_plan(component, facts, settings)
    outside = (*ingresses(plan), *virtual_services(plan))
    budgets = () if plan.graph else component_disruption_budgets(component, settings)
    around = (*services(plan), *outside, *budgets, *wait_config_maps(plan))
    return tuple(map(canonical, around)), plan.orchestrator.workloads(plan)


def component_shared_objects(component: DynamoComponentDeployment) -> tuple[Object, ...]:
    """The Service of the base model, which every user owns and none controls."""
    return tuple(map(canonical, model_services(component.metadata.namespace, component.spec)))
