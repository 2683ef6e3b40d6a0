"""Choose the workload provider of a graph: components with a workload each, or one PodCliqueSet of Grove.

The choice is made once. Repeated on each reconcile, it would move running graphs whenever Grove is
installed or removed; so it is recorded on the graph before anything is created, and kept. Where there is no
choice, nothing is recorded: if Grove is installed later, the existing objects decide.
"""

from collections.abc import Collection

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import COMPONENT, GROVE, recorded
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.revision import MANAGED
from dynamo_graphs.facts import Facts
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.optional_apis import GROVE as GROVE_API
from kube_runtime.types.meta import condition

_MAKES = {
    DynamoComponentDeployment.KIND.name: COMPONENT,
    "Deployment": COMPONENT,
    "LeaderWorkerSet": COMPONENT,
    "PodCliqueSet": GROVE,
    "PodClique": GROVE,
    "PodCliqueScalingGroup": GROVE,
}
"""Kinds that only one provider makes, for graphs without a record."""


def workload_provider(graph: DynamoGraphDeployment, facts: Facts, present: Collection[str]) -> str:
    """The provider of a graph: the recorded one, else that of what exists, else the best there is.

    `present` are the kinds of the objects that the graph controls. Where a user has deleted what only one
    provider creates, the status still shows what there was. The result may be unavailable.
    """
    if recorded := graph.metadata.annotations.get(labels.WORKLOAD_PROVIDER):
        return recorded
    for kinds in (present, _reported(graph)):
        made = {_MAKES[kind] for kind in kinds if kind in _MAKES}
        if len(made) == 1:
            return made.pop()
    wants_grove = graph.metadata.annotations.get(labels.ENABLE_GROVE, "").lower() != "false"
    return GROVE if wants_grove and facts.grove_served else COMPONENT


def has_begun(graph: DynamoGraphDeployment, present: Collection[str]) -> bool:
    """Whether a provider has ever made anything of a graph, which controls objects of these kinds now."""
    kinds = {*present, *_reported(graph)}
    return labels.WORKLOAD_PROVIDER in graph.metadata.annotations or not kinds.isdisjoint(_MAKES)


def runs_on_withheld_grove(
    graph: DynamoGraphDeployment,
    facts: Facts,
    present: Collection[str],
    *,
    has_foreign_finalizer: bool,
) -> bool:
    """Whether an earlier operator may run a graph on Grove, which is installed and which we may not read.

    A PodCliqueSet would be invisible to us, and components beside it would run every pod twice. So a graph
    that another operator has reconciled, and that has no components, counts as Grove's.
    """
    annotations = graph.metadata.annotations
    refuses = annotations.get(labels.ENABLE_GROVE, "").lower() == "false"
    if GROVE_API not in facts.withheld or refuses or labels.WORKLOAD_PROVIDER in annotations:
        return False
    if not _MAKES.keys().isdisjoint({*present, *_reported(graph)}):
        return workload_provider(graph, facts, present) == GROVE
    return has_foreign_finalizer or _has_foreign_status(graph)


def _has_foreign_status(graph: DynamoGraphDeployment) -> bool:
    """Whether another operator has written the status; ours contains its generation."""
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
    *,
    is_new: bool,
) -> dict[str, str]:
    """The annotations that a graph lacks, of those that keep a decision: its provider, its rollouts.

    Empty where nothing is to be decided: one provider only, and rollouts as they are by default. What exists
    keeps the rollouts that it began with, so only a graph that `is_new` has them chosen.
    """
    record: dict[str, str] = {}
    if facts.grove_served:
        record[labels.WORKLOAD_PROVIDER] = chosen
    if is_new and chosen == COMPONENT and settings.worker_rollout == MANAGED:
        record[labels.WORKER_ROLLOUT] = MANAGED
    return {key: value for key, value in record.items() if key not in graph.metadata.annotations}


def is_available(name: str, facts: Facts) -> bool:
    """Whether graphs of that provider can be worked on here and now."""
    return name == COMPONENT or (name == GROVE and facts.grove_served)


def on_record(graph: DynamoGraphDeployment, facts: Facts) -> DynamoGraphDeployment:
    """The graph with its provider on it, where no object of it is known."""
    return recorded(graph, workload_provider(graph, facts, ()))
