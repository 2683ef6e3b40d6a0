"""The objects of a graph on Grove: Services, Ingresses or VirtualServices, and one PodCliqueSet.

There is no component between the graph and its pods, so this module creates the plans that a component's
controller would create, with the differences of Grove: the graph alone decides about discovery, and a
debugger is for Deployments only.
"""

from collections.abc import Mapping
from dataclasses import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.grove_names import gang_names_of
from dynamo_graphs.api.provider import kai_queue
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.leader_wait import wait_config_maps
from dynamo_graphs.render.network import ingresses, model_services, services, virtual_services
from dynamo_graphs.render.orchestrators.grove import Gang, Member, pod_clique_set
from dynamo_graphs.render.plan import component_plan, discovery_backend
from dynamo_graphs.render.services import component_of, component_resource
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object


def grove_objects(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Object, ...]:
    """The Services of a graph, what leads to them from outside, then its PodCliqueSet."""
    plans = _plans(graph, facts, settings)
    found: list[Object] = []
    for plan in plans.values():
        found += _services(plan)
    for plan in plans.values():
        if plan.component_type == "frontend":
            found += (*ingresses(plan), *virtual_services(plan))
    for plan in plans.values():
        found += wait_config_maps(plan)
    named = gang_names_of(graph)
    gang = Gang(
        name=named.set,
        namespace=graph.metadata.namespace,
        members=tuple(Member(named.services[key], plan) for key, plan in plans.items()),
        has_kai=facts.kai_served,
        queue=kai_queue(graph),
        termination_delay_seconds=settings.grove_termination_delay_seconds,
        present=facts.gang,
    )
    return (*found, pod_clique_set(gang))


def grove_model_objects(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """The Services of the graph's models, one for each model."""
    specs = (spec for _, spec in sorted(graph.spec.services.items()))
    found = (
        service for spec in specs for service in model_services(graph.metadata.namespace, spec)
    )
    return tuple({service["metadata"]["name"]: service for service in found}.values())


def _plans(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings
) -> Mapping[str, ComponentPlan]:
    """The plan of each service, in the order of their keys."""
    return {
        key: _plan(graph, key, service, facts, settings)
        for key, service in sorted(graph.spec.services.items())
    }


def _plan(
    graph: DynamoGraphDeployment,
    key: str,
    service: ComponentSpec,
    facts: Facts,
    settings: RenderSettings,
) -> ComponentPlan:
    wanted = component_resource(graph, key, service, settings)
    discovery = {labels.DISCOVERY_BACKEND: discovery_backend(graph.metadata.annotations, settings)}
    spec = wanted["spec"]
    spec["annotations"] = spec.get("annotations", {}) | discovery
    plan = component_plan(component_of(graph, wanted), facts, settings)
    return replace(
        plan,
        service_account=plan.service_account if plan.is_discovered_by_kubernetes else "",
        switches={},
        annotations={
            key: text for key, text in plan.annotations.items() if key not in labels.SWITCHES
        },
        pod_annotations=discovery | plan.pod_annotations,
    )


def _services(plan: ComponentPlan) -> tuple[Object, ...]:
    """The service's Service, if clients use it."""
    is_asked_for = plan.component_type in ("frontend", "epp")
    if not plan.is_discovered_by_kubernetes and not is_asked_for:
        return ()
    found = services(plan)
    for each in found:
        each["spec"]["selector"].pop(labels.ROLE, None)  # pods of Grove have no such label
        if plan.is_discovered_by_kubernetes:
            each["metadata"]["labels"][labels.DISCOVERY_ENABLED] = "true"
        if plan.component_type == "epp":
            for port in each["spec"]["ports"]:
                port["appProtocol"] = "http2"
    return found
