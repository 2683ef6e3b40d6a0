"""Everything that one reconcile of a graph decides, before it writes anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.provider import recorded
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.adapters import AdapterPlan, Adapters, plan_adapters
from dynamo_graphs.plan.history import History, plan_history
from dynamo_graphs.plan.observed import Observed
from dynamo_graphs.plan.revisions import Member, Revisions, members, revisions, unnoted
from dynamo_graphs.plan.rollout_plan import Rollout, plan_rollout
from dynamo_graphs.plan.step import Step, next_step
from dynamo_graphs.render.graph import component_object
from dynamo_graphs.render.provider import has_begun, to_record, workload_provider
from dynamo_graphs.settings import RenderSettings
from kube_runtime.apply.drift import content_of, has_no_drift
from kube_runtime.kind import Object
from kube_runtime.types.apps import ControllerRevision
from kube_runtime.types.meta import Metadata

_BESIDE_PODS = frozenset(("autoscaling", "ingress", "replicas", "scalingAdapter"))
"""What a component may say differently and still have the same pods."""


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
    found: DynamoGraphDeployment, inputs: GraphInputs, settings: RenderSettings, now: datetime
) -> GraphPlan:
    """The next step of a valid graph whose provider is available."""
    chosen = workload_provider(found, inputs.facts, inputs.children)
    is_new = not has_begun(found, inputs.children)
    record = to_record(found, chosen, inputs.facts, settings, is_new=is_new)
    graph = _annotated(recorded(found, chosen), record)
    adapters = plan_adapters(graph, inputs.services, inputs.adapters, inputs.adapters_not_created)
    known = observed_revisions(graph, inputs.components, settings)
    step = next_step(graph, inputs.services, adapters.replicas, is_rolling_out=known.is_rolling_out)
    leaving = {member.name: inputs.leaving.get(member.name, 0) for member in known.old}
    rollout = plan_rollout(step.sized, known, now, leaving=leaving)
    history = plan_history(found, inputs.former)
    return GraphPlan(graph, record, adapters, step, rollout, history)


def _annotated(
    graph: DynamoGraphDeployment, annotations: Mapping[str, str]
) -> DynamoGraphDeployment:
    every = {**graph.metadata.annotations, **annotations}
    metadata = msgspec.structs.replace(graph.metadata, annotations=every)
    return msgspec.structs.replace(graph, metadata=metadata)


def observed_revisions(
    graph: DynamoGraphDeployment,
    components: Iterable[DynamoComponentDeployment],
    settings: RenderSettings,
) -> Revisions:
    """The revisions of workers of a graph, which is as the user wrote it."""
    present = tuple(components)
    compared = unnoted(graph, members(graph, present))
    unchanged = (member.name for member in compared if _is_unchanged(graph, member, settings))
    return revisions(graph, present, unchanged=frozenset(unchanged))


def _is_unchanged(graph: DynamoGraphDeployment, member: Member, settings: RenderSettings) -> bool:
    """Whether a component under its plain name says already what the graph says of its pods now.

    The API server may have filled in defaults further down, so there only what we want must be there.
    """
    if member.service not in graph.spec.services:
        return False
    wanted = component_object(graph, member.service, settings)
    fields = _fields(msgspec.convert(wanted, DynamoComponentDeployment))
    if fields != _fields(member.component):
        return False
    return has_no_drift(_about_pods(wanted), _about_pods(content_of(member.component)))


def _fields(component: DynamoComponentDeployment) -> frozenset[str]:
    """The fields of the spec that say something about pods."""
    return frozenset(msgspec.to_builtins(component.spec)) - _BESIDE_PODS


def _about_pods(component: Object) -> Object:
    spec = {name: value for name, value in component["spec"].items() if name not in _BESIDE_PODS}
    return {"apiVersion": component["apiVersion"], "kind": component["kind"], "spec": spec}
