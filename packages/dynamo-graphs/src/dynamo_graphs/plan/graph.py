"""Everything that one reconcile of a graph decides, before it writes anything.

The decisions are written into a copy of the user's graph, from which all objects are rendered. So the
renderer needs no special code for graphs that are suspended, restarting or scaled by an adapter.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.adapters import AdapterPlan, Adapters, plan_adapters
from dynamo_graphs.plan.adoption import BESIDE_PODS
from dynamo_graphs.plan.history import History, plan_history
from dynamo_graphs.plan.provider import has_begun, to_record, workload_provider
from dynamo_graphs.plan.replicas import Observed, effective_replicas, sized
from dynamo_graphs.plan.restart import RestartPlan, restart_plan
from dynamo_graphs.plan.revisions import Member, Revisions, members, revisions, unrecorded
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
    """`graph` is what to render now; `restart` and `suspension` are why it differs from the user's graph."""

    graph: DynamoGraphDeployment
    sized: DynamoGraphDeployment
    """The same with replicas set in every service, to compare with the workloads."""
    restart: RestartPlan
    suspension: Suspension


def next_step(
    graph: DynamoGraphDeployment,
    observed: Observed,
    adapters: Mapping[str, int],
    *,
    is_rolling_out: bool = False,
) -> Step:
    """Decide what to render now. `adapters` are the replicas that scaling adapters set, by service."""
    # A new graph has no pods that a restart could replace.
    is_unknown = not graph.status.observed_generation and graph.status.state is None
    is_new = is_unknown or not any(live.exists for live in observed.values())
    restart = restart_plan(graph, observed, is_new=is_new, is_rolling_out=is_rolling_out)
    suspended = suspension(graph, observed)
    replicas = effective_replicas(graph, adapters, suspended.zero)
    effective = _effective(graph, replicas, restart.ids)
    return Step(effective, sized(effective), restart, suspended)


def _effective(
    graph: DynamoGraphDeployment,
    replicas: Mapping[str, int | None],
    restarts: Mapping[str, str],
) -> DynamoGraphDeployment:
    """Return the graph with these replicas, and with the ids of restarts as annotations of its services."""
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
    """Everything beside the graph and the settings that the plan depends on; by default an empty cluster.

    `children` are the kinds of the objects that the graph controls, `components` its
    DynamoComponentDeployments, `former` its ControllerRevisions, `services` the observed state of its
    services. `leaving` counts the pods that have not ended, by component. `adapters_not_created` are the
    names of adapters that cannot be created or read.
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
    """What to write for a graph now.

    `record` are annotations to write on the graph first. `graph` is the user's graph with them, `step.graph`
    the one to render.
    """

    graph: DynamoGraphDeployment
    record: Mapping[str, str]
    adapters: AdapterPlan
    step: Step
    rollout: Rollout
    history: History

    def as_written(self, metadata: Metadata) -> "GraphPlan":
        """Return the plan with the metadata that the API server returned after the record was written."""

        def renewed(graph: DynamoGraphDeployment) -> DynamoGraphDeployment:
            return msgspec.structs.replace(graph, metadata=metadata)

        step = replace(self.step, graph=renewed(self.step.graph), sized=renewed(self.step.sized))
        return replace(self, graph=renewed(self.graph), step=step)


def plan_graph(
    live: DynamoGraphDeployment, inputs: GraphInputs, settings: RenderSettings, now: datetime
) -> GraphPlan:
    """Plan the next step of a valid graph whose provider is available."""
    chosen = workload_provider(live, inputs.facts, inputs.children)
    is_new = not has_begun(live, inputs.children)
    record = to_record(live, chosen, inputs.facts, settings, is_new=is_new)
    annotations = {**live.metadata.annotations, labels.WORKLOAD_PROVIDER: chosen, **record}
    metadata = msgspec.structs.replace(live.metadata, annotations=annotations)
    graph = msgspec.structs.replace(live, metadata=metadata)
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
    """Return the revisions of workers of the user's graph."""
    present = tuple(components)
    compared = unrecorded(graph, members(graph, present))
    unchanged = {member.name for member in compared if _is_unchanged(graph, member, settings)}
    return revisions(graph, present, unchanged=unchanged)


def _is_unchanged(graph: DynamoGraphDeployment, member: Member, settings: RenderSettings) -> bool:
    """Whether a component under its plain name already matches the graph in every field about pods.

    Nested fields may contain defaults of the API server, so there only the desired ones are compared.
    """
    if member.service not in graph.spec.services:
        return False
    desired = component_object(graph, member.service, settings)
    if _pod_fields(msgspec.convert(desired, DynamoComponentDeployment)) != _pod_fields(
        member.component
    ):
        return False
    return has_no_drift(_about_pods(desired), _about_pods(content_of(member.component)))


def _pod_fields(component: DynamoComponentDeployment) -> frozenset[str]:
    """The set fields of the spec that affect pods."""
    return frozenset(msgspec.to_builtins(component.spec)) - BESIDE_PODS


def _about_pods(component: Object) -> Object:
    spec = {name: value for name, value in component["spec"].items() if name not in BESIDE_PODS}
    return {"apiVersion": component["apiVersion"], "kind": component["kind"], "spec": spec}
