"""Decide what one reconcile of a graph writes, from what was read: validate, plan, render, every feature.

The controller, `dynamoctl render` and the preview of an upgrade call the same functions.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from itertools import chain

from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import DynamoComponentDeployment, is_worker
from dynamo_operator.component.objects import discovery_backend, graph_controlled, is_adopted
from dynamo_operator.component.service import (
    PLAIN,
    component_object,
    effective_replicas,
    has_revisions,
    sized,
)
from dynamo_operator.component.status import NO_ORCHESTRATOR
from dynamo_operator.component.validate import lacks_orchestrator
from dynamo_operator.features.decision import Decision, Delete, Feature, GraphInputs, Provider
from dynamo_operator.features.disruption import BUDGETS
from dynamo_operator.features.exposure import EXPOSURE
from dynamo_operator.features.grove.provider import ON_GROVE
from dynamo_operator.features.history import HISTORY
from dynamo_operator.features.picker import PICKER
from dynamo_operator.features.restart import RESTART
from dynamo_operator.features.rollouts.feature import ROLLOUTS
from dynamo_operator.features.rollouts.revisions import MANAGED
from dynamo_operator.features.scaling.feature import ADAPTERS
from dynamo_operator.features.suspension import SUSPENSION
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.render import SHARED_ACCOUNTS, discovery_objects, graph_shared_objects, pvc_objects
from dynamo_operator.graph.status import applied_views, refused_status, stopped_status
from dynamo_operator.names import is_on_grove, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared import cluster
from dynamo_operator.shared.cluster import Facts, PodCliqueSet
from dynamo_operator.shared.conditions import GraphReason, GraphState, Stop, in_v1beta1, stop_of_problems
from dynamo_operator.shared.problems import Problem
from dynamo_operator.takeover.plan import adopted_components, hindrance, is_taken_over
from kube_runtime.apply.result import Cause, Change, Verb, controls
from kube_runtime.types.meta import Object, Resource, condition


def decide(
    stored: DynamoGraphDeployment,
    inputs: GraphInputs,
    settings: RenderSettings,
    now: datetime,
    problems_of: Callable[[DynamoGraphDeployment], tuple[Problem, ...]],
) -> Decision:
    """Decide what to write for a stored graph. `problems_of` validates it, as it runs on its provider."""
    graph = on_provider(stored, inputs.provider, inputs.present_set)
    problems = problems_of(graph)
    if problems and inputs.in_v1beta1:
        problems = in_v1beta1(graph, problems)
    stop = graph_stop(graph, inputs.facts, problems)
    if stop is None:
        return decide_valid(stored, inputs, settings, now)
    is_recorded = labels.WORKLOAD_PROVIDER in stored.metadata.annotations
    is_withheld = is_on_grove(graph) and cluster.GROVE in inputs.facts.withheld
    # The same write removes the finalizer of another operator, which may be all that shows the provider.
    record = {labels.WORKLOAD_PROVIDER: names.GROVE} if is_withheld and not is_recorded else {}
    return Decision(graph, inputs, settings, now, record=record, stop=stop)


def decide_valid(
    stored: DynamoGraphDeployment, inputs: GraphInputs, settings: RenderSettings, now: datetime
) -> Decision:
    """Decide what to write for a valid graph whose provider is available."""
    kinds = {kind for kind, _ in inputs.live}
    record = to_record(stored, inputs.provider, inputs.facts, settings, kinds)
    is_chosen = labels.WORKER_ROLLOUT in stored.metadata.annotations
    if inputs.components and not is_chosen and _has_adopted(stored, inputs):
        record[labels.WORKER_ROLLOUT] = MANAGED
    metadata = replace(stored.metadata, annotations={**stored.metadata.annotations, **record})
    graph = on_provider(replace(stored, metadata=metadata), inputs.provider, inputs.present_set)
    provider = PROVIDERS.get(inputs.provider, COMPONENTS)
    decision = Decision(graph, inputs, settings, now, provider, record=record)
    features = tuple(feature for feature in FEATURES if feature.applies(decision))
    decision = replace(decision, features=features)
    for feature in features:
        if feature.plan:
            decision = feature.plan(decision)
    replicas = effective_replicas(graph, decision.adapters.replicas, decision.suspension.zero)
    ids = decision.restart.ids
    services = {
        key: replace(
            service,
            replicas=replicas[key],
            annotations=service.annotations | ({labels.RESTART_AT: ids[key]} if ids.get(key) else {}),
        )
        for key, service in graph.spec.services.items()
    }
    spec = replace(graph.spec, services=services)
    effective = replace(graph, spec=spec)
    decision = replace(decision, effective=effective, sized=sized(effective))
    for feature in features:
        if feature.plan_sized:
            decision = feature.plan_sized(decision)
    if inputs.live:
        before = (*decision.before, *_leftovers(decision, provider.replaces))
        decision = replace(decision, before=before)
    around = list[Object]()
    for feature in features:
        if feature.render:
            around += feature.render(decision)
    decision = provider.render(replace(decision, around=tuple(around)))
    for feature in features:
        if feature.adjust:
            decision = feature.adjust(decision)
    return decision


_PROVIDER_OF_KIND = {
    DynamoComponentDeployment.KIND.name: names.COMPONENT,
    "Deployment": names.COMPONENT,
    "LeaderWorkerSet": names.COMPONENT,
    "PodCliqueSet": names.GROVE,
    "PodClique": names.GROVE,
    "PodCliqueScalingGroup": names.GROVE,
}
"""Kinds that only one provider creates, for graphs without a record."""


# The choice is made once. Repeated on each reconcile, it would move running graphs whenever Grove
# is installed or removed; so it is recorded on the graph before anything is created, and kept.
# Where there is no choice, nothing is recorded: if Grove is installed later, the existing objects
# decide.
def workload_provider(graph: DynamoGraphDeployment, facts: Facts, present: Collection[str] = ()) -> str:
    """Return the provider of a graph: the recorded one, else that of its objects, else the best available.

    `present` are the kinds of the objects that the graph controls. If a user has deleted those that only one
    provider creates, the status still names them. The result may be unavailable.
    """
    annotations = graph.metadata.annotations
    if recorded := annotations.get(labels.WORKLOAD_PROVIDER):
        return recorded
    kinds = (present, [service.component_kind for service in (graph.status.services or {}).values()])
    made = [{_PROVIDER_OF_KIND[kind] for kind in some if kind in _PROVIDER_OF_KIND} for some in kinds]
    for providers in made:
        if len(providers) == 1:
            return providers.pop()
    if annotations.get(labels.ENABLE_GROVE, "").lower() == "false":
        return names.COMPONENT
    # If RBAC withholds Grove, the PodCliqueSet of another operator is invisible, and components beside it
    # would run every pod twice. So a graph that another operator has reconciled counts as one on Grove.
    may_be_hidden = cluster.GROVE in facts.withheld and not any(made) and _is_of_another_operator(graph)
    return names.GROVE if facts.grove_served or may_be_hidden else names.COMPONENT


def _is_of_another_operator(graph: DynamoGraphDeployment) -> bool:
    status = graph.status
    ready = condition(status.conditions, "Ready")
    # Our statuses contain an observed generation.
    is_ours = status.observed_generation or (ready is not None and ready.observed_generation)
    has_foreign_status = not is_ours and (status.state is not None or ready is not None)
    return has_foreign_status or labels.FINALIZER in graph.metadata.finalizers


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
        reported = (service.component_kind for service in (graph.status.services or {}).values())
        is_new = _PROVIDER_OF_KIND.keys().isdisjoint((*present, *reported))
        manages = settings.worker_rollout == MANAGED and chosen == names.COMPONENT
        if is_new and manages and labels.WORKER_ROLLOUT not in annotations:
            record[labels.WORKER_ROLLOUT] = MANAGED
    return record


def _has_adopted(graph: DynamoGraphDeployment, inputs: GraphInputs) -> bool:
    """Whether the Go operator of the 1.x line has managed the rollouts of the graph's workers."""
    workers = filter(is_worker, graph.spec.services.values())
    return any(map(is_adopted, inputs.components)) and all(map(has_revisions, workers))


def with_provider(graph: DynamoGraphDeployment, facts: Facts) -> DynamoGraphDeployment:
    """Return a graph that has no objects yet, on the provider that it would get."""
    return on_provider(graph, workload_provider(graph, facts))


def _leftovers(decision: Decision, type_: type[Resource]) -> Iterator[Delete]:
    # Before the apply, not among its deletions: these objects hold the names that the apply needs.
    for child in decision.inputs.live.values():
        is_left = isinstance(child, type_) and not child.metadata.deletion_timestamp
        if is_left and controls(decision.graph, child):
            change = Change(Verb.DELETE, type_.KIND.name, child.metadata.name, Cause.PROVIDER)
            yield Delete(child, change)


def _render_components(decision: Decision) -> Decision:
    graph = decision.effective
    workers = decision.rollout.workers if decision.rollout else PLAIN
    services, settings = sorted(graph.spec.services), decision.settings
    components = [component_object(graph, key, settings, workers) for key in services]
    present = {it.metadata.name: it.spec.backend_framework for it in decision.inputs.components}
    for body in components:
        # The Go operator of the 1.x line writes what it has detected, and the field is immutable.
        if recorded := present.get(body["metadata"]["name"]):
            body["spec"].setdefault("backendFramework", recorded)
    rendered = graph_controlled(graph, chain(decision.around, components))
    return replace(decision, rendered=rendered, objects=rendered)


COMPONENTS = Provider(_render_components, applied_views, replaces=PodCliqueSet)
PROVIDERS = {names.COMPONENT: COMPONENTS, names.GROVE: ON_GROVE}
"""By the value of the annotation that records the choice."""


def _taken_over(decision: Decision) -> Decision:
    graph, live = decision.graph, decision.inputs.live
    objects = adopted_components(decision.objects, live)
    if not (why := hindrance(objects, decision.spared, live, graph.spec.services)):
        return replace(decision, objects=objects)
    text = f"not taken over from another operator: {why}; its pods keep running"
    status = stopped_status(graph, GraphState.FAILED, GraphReason.FAILED, text)
    return replace(decision, stop=Stop(status, "TakeoverRefused", [text]))


DISCOVERY = Feature(
    lambda it: any(
        discovery_backend(annotations, it.settings) == "kubernetes"
        for annotations in (
            it.graph.metadata.annotations,
            # A service's own has no effect on Grove.
            *(
                {**service.annotations, **it.graph.metadata.annotations}
                for service in it.graph.spec.services.values()
                if not is_on_grove(it.graph)
            ),
        )
    ),
    render=lambda decision: discovery_objects(*decision.graph.key),
)
CLAIMS = Feature(
    lambda it: bool(it.graph.spec.pvcs),
    adjust=lambda decision: replace(decision, claims=pvc_objects(decision.effective)),
)
ACCOUNTS = Feature(
    lambda it: any(service.component_type in SHARED_ACCOUNTS for service in it.graph.spec.services.values()),
    adjust=lambda decision: replace(
        decision, accounts=graph_shared_objects(decision.effective, decision.settings)
    ),
)
SSH_KEYS = Feature(
    lambda it: bool(it.inputs.ssh_keys),
    adjust=lambda decision: replace(decision, accounts=(*decision.accounts, *decision.inputs.ssh_keys)),
)
TAKEOVER = Feature(lambda it: any(map(is_taken_over, it.inputs.live.values())), adjust=_taken_over)
FEATURES = (
    HISTORY,  # all graphs
    ROLLOUTS,  # with `worker-rollout: managed`, or with revisions of workers
    ADAPTERS,  # a service has a scaling adapter, or had one
    RESTART,  # `spec.restart`, or a workload that has an id of one
    SUSPENSION,  # annotated, or suspended before
    DISCOVERY,  # a service finds others through the API server, as it does by default
    PICKER,  # a service of type `epp`
    BUDGETS,  # a budget of a service, or the default of the installation; not on Grove
    CLAIMS,  # `spec.pvcs`
    ACCOUNTS,  # a planner or an endpoint picker
    SSH_KEYS,  # TensorRT-LLM on several nodes
    TAKEOVER,  # components of the Go operator, while its marks are on them
    EXPOSURE,  # an ingress on Grove; that of other services is their component's
)
"""What a graph may use beside its services, and its history, which all have (map: `features/__init__.py`).

Each sees what those before it have decided: a new adapter and a restart depend on the rollout.
"""


def is_available(provider: str, facts: Facts) -> bool:
    """Whether the cluster serves what the provider needs."""
    return provider == names.COMPONENT or (provider == names.GROVE and facts.grove_served)


# The operator writes nothing for such a graph, and its pods keep running. It watches each object
# that it reads here, so the creation of a missing one wakes the graph.
def graph_stop(graph: DynamoGraphDeployment, facts: Facts, problems: Sequence[Problem]) -> Stop | None:
    """Why nothing may be applied for a graph with its workload provider on it; None if it may be."""
    provider = graph.metadata.annotations[labels.WORKLOAD_PROVIDER]
    if not is_available(provider, facts):
        text = f'workload provider "{provider}" is not available'
        if is_on_grove(graph) and (why := cluster.withheld_text(facts.withheld, (cluster.GROVE,))):
            text = f"{text}: {why}"
        status = stopped_status(graph, GraphState.FAILED, GraphReason.PROVIDER_UNAVAILABLE, text)
        return Stop(status, "WorkloadProviderUnavailable", [text])
    if problems:
        return stop_of_problems(refused_status(graph, problems), problems)
    if lacks := tuple(missing(graph, facts)):
        states, reasons, texts = zip(*lacks, strict=True)
        status = stopped_status(graph, states[0], reasons[0], "; ".join(texts))
        return Stop(status, "PrerequisiteMissing", texts)
    return None


def missing(graph: DynamoGraphDeployment, facts: Facts) -> Iterator[tuple[GraphState, GraphReason, str]]:
    """State, reason and message of a graph for each missing prerequisite, those that fail it first."""
    services = graph.spec.services.values()
    if not is_on_grove(graph) and any(lacks_orchestrator(service, facts) for service in services):
        forbidden = cluster.withheld_text(facts.withheld, (cluster.LEADER_WORKER_SET, cluster.GROVE))
        text = f"failed to reconcile Dynamo components deployments: {forbidden or NO_ORCHESTRATOR}"
        reason = GraphReason.API_FORBIDDEN if forbidden else GraphReason.NO_ORCHESTRATOR
        yield GraphState.FAILED, reason, text
    has_picker = any(service.component_type == "epp" for service in services)
    if has_picker and not facts.inference_pools_served:
        if forbidden := cluster.withheld_text(facts.withheld, (cluster.INFERENCE_POOL,)):
            yield GraphState.FAILED, GraphReason.API_FORBIDDEN, forbidden
        else:
            text = (
                f"the API of InferencePools ({cluster.InferencePool.KIND.group}) is not served: an endpoint "
                "picker requires the Gateway API inference extension"
            )
            yield GraphState.FAILED, GraphReason.FAILED, text
    if facts.ssh_keys_refusal:
        yield GraphState.FAILED, GraphReason.REJECTED, facts.ssh_keys_refusal
    elif facts.missing_ssh_keys:
        text = (
            f"Secret {facts.missing_ssh_keys} not found or not readable: it holds the SSH keys "
            "for multinode TensorRT-LLM"
        )
        yield GraphState.FAILED, GraphReason.FAILED, text
    if is_on_grove(graph) and facts.kai_served and names.kai_queue(graph) not in facts.kai_queues:
        text = (
            f"queue '{names.kai_queue(graph)}' not found in cluster. "
            "Ensure the queue exists before using kai-scheduler"
        )
        yield GraphState.FAILED, GraphReason.FAILED, text
    for claim in graph.spec.pvcs:
        if not claim.create and claim.name not in facts.claims:
            text = f"PersistentVolumeClaim {claim.name} not found: create it, or set create: true"
            yield GraphState.PENDING, GraphReason.SOME_NOT_READY, text
