"""Rollouts are counted by their result, and every result is there before the first of it."""

from itertools import pairwise

from prometheus_client import CollectorRegistry

from dynamo_operator.features.rollouts.status import RolloutResult
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
    RollingUpdateStatus,
)
from dynamo_operator.observability import RolloutMetrics


def graph(*rollout: str) -> DynamoGraphDeployment:
    update = RollingUpdateStatus(rollout[0], to_hash=rollout[1]) if rollout else None
    return DynamoGraphDeployment(status=DynamoGraphDeploymentStatus(rolling_update=update))


def counts(registry: CollectorRegistry) -> dict[str, float | None]:
    name = "dynamo_operator_rollouts_total"
    return {each.value: registry.get_sample_value(name, {"result": each}) for each in RolloutResult}


def test_the_results_of_written_statuses_add_up() -> None:
    registry = CollectorRegistry()
    metrics = RolloutMetrics(registry)
    nothing = {"started": 0, "completed": 0, "superseded": 0, "deadline_exceeded": 0}
    assert nothing == counts(registry)
    steps = [graph(), graph("InProgress", "a"), graph("Pending", "b"), graph("Completed", "b")]
    for before, after in pairwise(steps):
        metrics.written(before, after)
        metrics.written(after, after)
    assert nothing | {"started": 2, "completed": 1, "superseded": 1} == counts(registry)


def test_a_process_that_starts_in_the_middle_counts_only_what_comes() -> None:
    registry = CollectorRegistry()
    metrics, under_way = RolloutMetrics(registry), graph("InProgress", "a")
    metrics.written(under_way, under_way)
    metrics.written(under_way, graph("Completed", "a"))
    assert (0, 1) == (counts(registry)["started"], counts(registry)["completed"])
