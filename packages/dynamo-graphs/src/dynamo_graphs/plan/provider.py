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

_PROVIDER_OF_KIND = {
    DynamoComponentDeployment.KIND.name: COMPONENT,
    "Deployment": COMPONENT,
    "LeaderWorkerSet": COMPONENT,
    "PodCliqueSet": GROVE,
    "PodClique": GROVE,
    "PodCliqueScalingGroup": GROVE,
}
"""Kinds that only one provider creates, for graphs without a record."""


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


def has_begun(graph: DynamoGraphDeployment, present: Collection[str]) -> bool:
    """Whether a provider has ever created anything for a graph, which controls objects of these kinds."""
    kinds = {*present, *_reported(graph)}
    return labels.WORKLOAD_PROVIDER in graph.metadata.annotations or not kinds.isdisjoint(
        _PROVIDER_OF_KIND
    )


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
    *,
    is_new: bool,
) -> dict[str, str]:
    """Return the annotations to add to a graph that record its provider and how its workers roll out.

    Empty if there is no choice: a single provider, and native rollouts. Only a graph that `is_new` gets the
    operator's default of rollouts; others keep theirs.
    """
    record: dict[str, str] = {}
    if facts.grove_served:
        record[labels.WORKLOAD_PROVIDER] = chosen
    if is_new and chosen == COMPONENT and settings.worker_rollout == MANAGED:
        record[labels.WORKER_ROLLOUT] = MANAGED
    return {key: value for key, value in record.items() if key not in graph.metadata.annotations}


def is_available(name: str, facts: Facts) -> bool:
    """Whether the cluster serves what the provider needs."""
    return name == COMPONENT or (name == GROVE and facts.grove_served)


def with_provider(
    graph: DynamoGraphDeployment, facts: Facts, present: Collection[str] = ()
) -> DynamoGraphDeployment:
    """Return the graph with its provider recorded; `present` are the kinds that it controls."""
    return recorded(graph, workload_provider(graph, facts, present))
