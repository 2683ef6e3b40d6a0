"""Which provider runs the services of a graph, and what each of the two renders and reports."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from operator import itemgetter

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.plan import canonical
from dynamo_operator.component.pods import ServiceView, diagnose
from dynamo_operator.features.grove.render import grove_model_objects
from dynamo_operator.features.grove.status import grove_views
from dynamo_operator.features.namespace_defaults import grove_members, rendered_as_running
from dynamo_operator.features.rollouts.plan import (
    MANAGED,
    PLAIN,
    worker_component_name,
)
from dynamo_operator.features.takeover.apply import (
    adopted_components,
    adopted_set,
    set_starts_to_drain,
    without_new_drains,
)
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.graph.decision import Decision, Provider
from dynamo_operator.graph.render import graph_objects
from dynamo_operator.graph.status import component_views
from dynamo_operator.names import COMPONENT, GROVE, component_name, recorded
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import GROVE as GROVE_API
from dynamo_operator.shared.cluster import (
    Facts,
    PodCliqueScale,
    PodCliqueScalingGroupScale,
    PodCliqueSet,
)
from dynamo_operator.shared.writes import Delete, Write, scaling
from kube_runtime.apply.result import Applied, Cause, Change, Verb, controls
from kube_runtime.kind import Object
from kube_runtime.types.meta import condition

_PROVIDER_OF_KIND = {
    DynamoComponentDeployment.KIND.name: COMPONENT,
    "Deployment": COMPONENT,
    "LeaderWorkerSet": COMPONENT,
    "PodCliqueSet": GROVE,
    "PodClique": GROVE,
    "PodCliqueScalingGroup": GROVE,
}
"""Kinds that only one provider creates, for graphs without a record."""


# The choice is made once. Repeated on each reconcile, it would move running graphs whenever Grove
# is installed or removed; so it is recorded on the graph before anything is created, and kept.
# Where there is no choice, nothing is recorded: if Grove is installed later, the existing objects
# decide.
def workload_provider(graph: DynamoGraphDeployment, facts: Facts, present: Collection[str]) -> str:
    """Return the provider of a graph: the recorded one, else that of its objects, else the best available.

    `present` are the kinds of the objects that the graph controls. If a user has deleted those that only one
    provider creates, the status still names them. The result may be unavailable.
    """
    if recorded := graph.metadata.annotations.get(labels.WORKLOAD_PROVIDER):
        return recorded
    for kinds in (present, _reported(graph)):
        made = {_PROVIDER_OF_KIND[kind] for kind in kinds if kind in _PROVIDER_OF_KIND}
        if len(made) == 1:
            return made.pop()
    wants_grove = graph.metadata.annotations.get(labels.ENABLE_GROVE, "").lower() != "false"
    return GROVE if wants_grove and facts.grove_served else COMPONENT


def runs_on_withheld_grove(
    graph: DynamoGraphDeployment,
    facts: Facts,
    present: Collection[str],
    *,
    has_foreign_finalizer: bool,
) -> bool:
    """Whether another operator may run a graph on Grove, while RBAC denies this one access to Grove.

    Its PodCliqueSet would be invisible, and components beside it would run every pod twice. So a graph that
    another operator has reconciled, and that has no components, counts as one on Grove.
    """
    annotations = graph.metadata.annotations
    refuses = annotations.get(labels.ENABLE_GROVE, "").lower() == "false"
    if GROVE_API not in facts.withheld or refuses or labels.WORKLOAD_PROVIDER in annotations:
        return False
    if not _PROVIDER_OF_KIND.keys().isdisjoint({*present, *_reported(graph)}):
        return workload_provider(graph, facts, present) == GROVE
    return has_foreign_finalizer or _has_foreign_status(graph)


def _has_foreign_status(graph: DynamoGraphDeployment) -> bool:
    """Whether another operator wrote the status; ours contains an observed generation."""
    status = graph.status
    ready = condition(status.conditions, "Ready")
    is_ours = status.observed_generation or (ready is not None and ready.observed_generation)
    return not is_ours and (status.state is not None or ready is not None)


def _reported(graph: DynamoGraphDeployment) -> set[str]:
    """The kinds of the workloads in the status of a graph."""
    return {service.component_kind for service in (graph.status.services or {}).values()}


def to_record(
    graph: DynamoGraphDeployment,
    chosen: str,
    facts: Facts,
    settings: RenderSettings,
    present: Collection[str],
) -> dict[str, str]:
    """Return the annotations to add to a graph that record its provider and how its workers roll out.

    Empty if there is no choice: a single provider, and native rollouts. Only a graph for which no provider
    has ever created anything gets the operator's default of rollouts; others, which control objects of the
    kinds `present` or report some, keep theirs.
    """
    annotations, record = graph.metadata.annotations, dict[str, str]()
    if labels.WORKLOAD_PROVIDER not in annotations:
        if facts.grove_served:
            record[labels.WORKLOAD_PROVIDER] = chosen
        is_new = _PROVIDER_OF_KIND.keys().isdisjoint({*present, *_reported(graph)})
        manages = settings.worker_rollout == MANAGED and chosen == COMPONENT
        if is_new and manages and labels.WORKER_ROLLOUT not in annotations:
            record[labels.WORKER_ROLLOUT] = MANAGED
    return record


def with_provider(
    graph: DynamoGraphDeployment, facts: Facts, present: Collection[str] = ()
) -> DynamoGraphDeployment:
    """Return the graph with its provider recorded; `present` are the kinds that it controls."""
    return recorded(graph, workload_provider(graph, facts, present))


def _render_components(decision: Decision) -> Decision:
    """The objects of a graph whose services are components of this operator."""
    graph, inputs = decision.effective, decision.inputs
    workers = decision.rollout.workers if decision.rollout else PLAIN
    rendered = graph_objects(graph, inputs.facts, decision.settings, workers)
    if not inputs.live:
        return replace(decision, rendered=rendered, objects=rendered)
    return replace(
        decision,
        rendered=rendered,
        objects=adopted_components(rendered, inputs.live),
        before=(*decision.before, *_leftovers(decision, PodCliqueSet)),
    )


def _component_views(
    decision: Decision, applied: Applied, _: datetime
) -> Mapping[str, ServiceView]:
    graph, rollout = decision.effective, decision.rollout
    workers = rollout.workers if rollout else PLAIN
    names = {
        key: worker_component_name(graph, key, workers)
        if workers.suffix
        else component_name(graph.metadata.name, key)
        for key in sorted(graph.spec.services)
    }
    components = {
        key: (name, applied.get(DynamoComponentDeployment, name)) for key, name in names.items()
    }
    return component_views(graph, components, rollout)


def _render_on_grove(decision: Decision) -> Decision:
    """The objects of a graph on Grove: its pods keep what their namespace gave them, and their templates."""
    graph, inputs = decision.effective, decision.inputs
    members = grove_members(graph, inputs.facts, decision.settings, inputs.pods)
    rendered, objects = rendered_as_running(
        partial(_set_with_facts, decision), itemgetter(1), members, inputs.live, inputs.facts
    )
    return replace(
        decision,
        rendered=rendered,
        objects=objects,
        models=tuple(map(canonical, grove_model_objects(graph))),
        before=(*decision.before, *_leftovers(decision, DynamoComponentDeployment)),
        after=(*decision.after, *_resized_members(decision)),
    )


def _set_with_facts(
    decision: Decision, facts: Facts
) -> tuple[tuple[Object, ...], tuple[Object, ...]]:
    """The objects as rendered with these facts, and as applied."""
    graph, inputs, settings = decision.effective, decision.inputs, decision.settings
    rendered = graph_objects(graph, facts, settings)
    adopted = adopted_set(rendered, inputs.live, inputs.set_origin)
    if not set_starts_to_drain(adopted, inputs.live):
        return rendered, adopted
    undrained = msgspec.structs.replace(settings, worker_drain_period_seconds=0)
    earlier = graph_objects(graph, facts, undrained)
    return rendered, tuple(without_new_drains(adopted, earlier, inputs.live))


def _resized_members(decision: Decision) -> Iterator[Write]:
    """Scale live cliques and scaling groups whose replicas differ from the graph's."""
    for key, member in decision.inputs.members.items():
        live, replicas = member.live, decision.effective.spec.services[key].replicas
        if live is None or live.metadata.deletion_timestamp:
            continue
        if replicas is not None and replicas != live.spec.replicas:
            type_ = PodCliqueScalingGroupScale if member.is_group else PodCliqueScale
            yield scaling(live, replicas, Cause.SPEC, type_)


def _grove_views(decision: Decision, applied: Applied, now: datetime) -> Mapping[str, ServiceView]:
    graph, inputs = decision.effective, decision.inputs
    services = graph.spec.services
    diagnoses = {
        key: diagnose(inputs.pods.get(key, ()), nodes=service.nodes, now=now)
        for key, service in services.items()
    }
    members = {
        key: replace(member, desired=services[key].replicas)
        for key, member in inputs.members.items()
    }
    clique_set = applied.get(PodCliqueSet, grove_names_of(graph).set)
    return grove_views(graph, clique_set, members, diagnoses)


def _leftovers(
    decision: Decision, type_: type[DynamoComponentDeployment | PodCliqueSet]
) -> Iterator[Delete]:
    """Delete the workloads of the previous provider.

    Before the apply, not among its deletions: these objects hold the names that the apply needs.
    """
    for child in decision.inputs.live.values():
        is_left = isinstance(child, type_) and not child.metadata.deletion_timestamp
        if is_left and controls(decision.graph, child):
            change = Change(Verb.DELETE, type_.KIND.name, child.metadata.name, Cause.PROVIDER)
            yield Delete(child, change)


PROVIDERS = {
    COMPONENT: Provider(_render_components, _component_views),
    GROVE: Provider(_render_on_grove, _grove_views),
}
"""By the value of the annotation that records the choice."""
