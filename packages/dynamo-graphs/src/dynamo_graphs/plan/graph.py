"""Everything that one reconcile of a graph decides, before it writes anything.

What is decided for this moment is written into the user's graph, and everything after this, from rendering to
status, sees only the graph that comes out. So a suspended graph, one that restarts and one that an autoscaler
sizes are rendered by the same code as any other.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import recorded
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.adapters import AdapterPlan, Adapters, plan_adapters
from dynamo_graphs.plan.adoption import BESIDE_PODS
from dynamo_graphs.plan.history import History, plan_history
from dynamo_graphs.plan.provider import has_begun, to_record, workload_provider
from dynamo_graphs.plan.replicas import Observed, effective_replicas, sized
from dynamo_graphs.plan.restart import RestartPlan, restart_plan
from dynamo_graphs.plan.revisions import Member, Revisions, members, revisions, unnoted
from dynamo_graphs.plan.rollout_plan import Rollout, plan_rollout
from dynamo_graphs.plan.suspension import Suspension, suspension
from dynamo_graphs.render.graph import component_object
from dynamo_graphs.settings import RenderSettings
from kube_runtime.apply.drift import content_of, has_no_drift
from kube_runtime.kind import Object
from kube_runtime.types.apps import ControllerRevision
from kube_runtime.types.meta import Metadata


@dataclass(frozen=True, slots=True)
class Step:
    """`graph` is what to make now; the rest says why it is not quite what the user wrote."""

    graph: DynamoGraphDeployment
    sized: DynamoGraphDeployment
    """The same with a number of replicas in every service, to compare with what runs."""
    restart: RestartPlan
    suspension: Suspension


def next_step(
    graph: DynamoGraphDeployment,
    observed: Observed,
    adapters: Mapping[str, int],
    *,
    is_rolling_out: bool = False,
) -> Step:
    """What to make of the graph now. `adapters` are the replicas that scaling adapters ask for."""
    # Before anything was made there is nothing old that a restart could replace.
    is_unknown = not graph.status.observed_generation and graph.status.state is None
    is_new = is_unknown or not any(live.exists for live in observed.values())
    restart = restart_plan(graph, observed, is_new=is_new, is_rolling_out=is_rolling_out)
    suspended = suspension(graph, observed)
    replicas = effective_replicas(graph, adapters, suspended.zero)
    made = _effective(graph, replicas, restart.ids)
    return Step(made, sized(made), restart, suspended)


def _effective(
    graph: DynamoGraphDeployment,
    replicas: Mapping[str, int | None],
    restarts: Mapping[str, str],
) -> DynamoGraphDeployment:
    """The graph with these replicas, and with the ids of restarts where pods carry them."""
    services = {}
    for key, service in graph.spec.services.items():
        annotations = service.annotations
        if id_ := restarts.get(key):
            annotations = annotations | {labels.RESTART_AT: id_}
        services[key] = msgspec.structs.replace(
            service, replicas=replicas[key], annotations=annotations
        )
    spec = msgspec.structs.replace(graph.spec, services=services)
    return msgspec.structs.replace(graph, spec=spec)


@dataclass(frozen=True, slots=True)
class GraphInputs:
    """What the decision depends on beside the graph and the settings; the defaults are an empty cluster.

    `children` are the kinds of the objects that the graph controls, `components` its
    DynamoComponentDeployments, `former` its ControllerRevisions, `services` how each service runs now.
    `leaving` counts the pods that have not ended, by the names of their components. `adapters_not_created`
    are names that cannot be created or read.
    """

    facts: Facts
    children: frozenset[str] = frozenset()
    services: Observed = field(default_factory=dict)
    components: tuple[DynamoComponentDeployment, ...] = ()
    former: tuple[ControllerRevision, ...] = ()
    leaving: Mapping[str, int] = field(default_factory=dict[str, int])
    adapters: Adapters = field(default_factory=dict)
    adapters_not_created: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class GraphPlan:
    """`record` are annotations to write on the graph before anything else.

    `graph` is as the user wrote it, with the record; `step` has what to make of it now.
    """

    graph: DynamoGraphDeployment
    record: Mapping[str, str]
    adapters: AdapterPlan
    step: Step
    rollout: Rollout
    history: History

    def as_written(self, metadata: Metadata) -> "GraphPlan":
        """The same plan for the graph with the metadata that a write of the record returned."""

        def renewed(graph: DynamoGraphDeployment) -> DynamoGraphDeployment:
            return msgspec.structs.replace(graph, metadata=metadata)

        step = replace(self.step, graph=renewed(self.step.graph), sized=renewed(self.step.sized))
        return replace(self, graph=renewed(self.graph), step=step)


def with_provider(graph: DynamoGraphDeployment, inputs: GraphInputs) -> DynamoGraphDeployment:
    """The graph with its workload provider on it: the recorded one, or the one to record."""
    return recorded(graph, workload_provider(graph, inputs.facts, inputs.children))


def plan_graph(
    live: DynamoGraphDeployment, inputs: GraphInputs, settings: RenderSettings, now: datetime
) -> GraphPlan:
    """The next step of a valid graph whose provider is available."""
    chosen = workload_provider(live, inputs.facts, inputs.children)
    is_new = not has_begun(live, inputs.children)
    record = to_record(live, chosen, inputs.facts, settings, is_new=is_new)
    graph = recorded(live, chosen)
    annotations = {**graph.metadata.annotations, **record}
    metadata = msgspec.structs.replace(graph.metadata, annotations=annotations)
    graph = msgspec.structs.replace(graph, metadata=metadata)
    adapters = plan_adapters(graph, inputs.services, inputs.adapters, inputs.adapters_not_created)
    observed = observed_revisions(graph, inputs.components, settings)
    step = next_step(
        graph, inputs.services, adapters.replicas, is_rolling_out=observed.is_rolling_out
    )
    leaving = {member.name: inputs.leaving.get(member.name, 0) for member in observed.old}
    rollout = plan_rollout(step.sized, observed, now, leaving=leaving)
    history = plan_history(live, inputs.former)
    return GraphPlan(graph, record, adapters, step, rollout, history)


def observed_revisions(
    graph: DynamoGraphDeployment,
    components: Iterable[DynamoComponentDeployment],
    settings: RenderSettings,
) -> Revisions:
    """The revisions of workers of a graph, which is as the user wrote it."""
    present = tuple(components)
    compared = unnoted(graph, members(graph, present))
    unchanged = {member.name for member in compared if _is_unchanged(graph, member, settings)}
    return revisions(graph, present, unchanged=unchanged)


def _is_unchanged(graph: DynamoGraphDeployment, member: Member, settings: RenderSettings) -> bool:
    """Whether a component under its plain name says already what the graph says of its pods now.

    The API server may have filled in defaults further down, so there only what we want must be there.
    """
    if member.service not in graph.spec.services:
        return False
    desired = component_object(graph, member.service, settings)
    fields = _fields(msgspec.convert(desired, DynamoComponentDeployment))
    if fields != _fields(member.component):
        return False
    return has_no_drift(_about_pods(desired), _about_pods(content_of(member.component)))


def _fields(component: DynamoComponentDeployment) -> frozenset[str]:
    """The fields of the spec that say something about pods."""
    return frozenset(msgspec.to_builtins(component.spec)) - BESIDE_PODS


def _about_pods(component: Object) -> Object:
    spec = {name: value for name, value in component["spec"].items() if name not in BESIDE_PODS}
    return {"apiVersion": component["apiVersion"], "kind": component["kind"], "spec": spec}
