"""The objects of one component: its Services, its Ingress, its workload."""

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.facts import Facts
from dynamo_operator.kube.kind import Object
from dynamo_operator.render.canonical import canonical
from dynamo_operator.render.disruption import component_disruption_budgets
from dynamo_operator.render.leader_wait import wait_config_maps
from dynamo_operator.render.network import (
    ingresses,
    model_services,
    services,
    virtual_services,
)
from dynamo_operator.render.plan import component_plan
from dynamo_operator.settings import RenderSettings


def component_objects(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """The objects that the component controls, without owner references, in order of creation."""
    plan = component_plan(component, facts, settings)
    outside = (*ingresses(plan), *virtual_services(plan))
    budgets = () if plan.graph else component_disruption_budgets(component, settings)
    scripts = wait_config_maps(plan)
    found = (*services(plan), *outside, *budgets, *scripts, *plan.orchestrator.workloads(plan))
    return tuple(map(canonical, found))


def component_shared_objects(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """The Service of the base model, which every user owns and none controls."""
    return tuple(map(canonical, model_services(component_plan(component, facts, settings))))
