"""Grove as the provider of a graph: one PodCliqueSet, which it creates and scales, and the services in it."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import chain

from msgspec.structs import replace

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.diagnosis import diagnose
from dynamo_operator.component.namespace_defaults import facts_of_running_pods
from dynamo_operator.component.objects import graph_controlled
from dynamo_operator.component.service import ServiceView
from dynamo_operator.features.decision import Decision, Provider, Write, scaling
from dynamo_operator.features.grove.render import grove_model_objects, grove_objects, grove_units
from dynamo_operator.features.grove.status import grove_view
from dynamo_operator.graph.api import grove_names_of
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, PodCliqueScale, PodCliqueScalingGroupScale, PodCliqueSet
from dynamo_operator.takeover.plan import as_running
from kube_runtime.apply.result import Applied, Cause
from kube_runtime.types.meta import Object


def _render_set(decision: Decision) -> Decision:
    graph, inputs = decision.effective, decision.inputs
    units = grove_units(graph, inputs.facts, decision.settings, inputs.pods)
    facts = facts_of_running_pods(
        inputs.facts, units, inputs.live, lambda facts: _set_with_facts(decision, facts)[1]
    )
    rendered, objects = _set_with_facts(decision, facts)
    return replace(
        decision,
        rendered=rendered,
        objects=objects,
        models=grove_model_objects(graph),
        after=(*decision.after, *_resized_members(decision)),
    )


def _set_with_facts(decision: Decision, facts: Facts) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """The objects as rendered with these facts, and as applied."""
    graph, inputs, settings = decision.effective, decision.inputs, decision.settings

    def render(settings: RenderSettings) -> tuple[Object, ...]:
        return graph_controlled(graph, chain(decision.around, grove_objects(graph, facts, settings)))

    rendered = render(settings)
    undrained = replace(settings, worker_drain_period_seconds=0)
    return rendered, tuple(as_running(rendered, partial(render, undrained), inputs.live, inputs.set_origin))


def _resized_members(decision: Decision) -> Iterator[Write]:
    for key, member in decision.inputs.members.items():
        live, replicas = member.live, decision.effective.spec.services[key].replicas
        if live is None or live.metadata.deletion_timestamp:
            continue
        if replicas is not None and replicas != live.spec.replicas:
            type_ = PodCliqueScalingGroupScale if member.is_group else PodCliqueScale
            yield scaling(live, replicas, Cause.SPEC, type_)


def _set_views(decision: Decision, applied: Applied, now: datetime) -> Mapping[str, ServiceView]:
    graph, inputs = decision.effective, decision.inputs
    clique_set, views = applied.get(PodCliqueSet, grove_names_of(graph).set), {}
    for key, member in inputs.members.items():
        service = graph.spec.services[key]
        diagnosis = diagnose(inputs.pods.get(key, ()), nodes=service.nodes, now=now)
        desired = replace(member, desired=service.replicas)
        views[key] = grove_view(graph, key, clique_set, desired, diagnosis)
    return views


ON_GROVE = Provider(_render_set, _set_views, replaces=DynamoComponentDeployment)
