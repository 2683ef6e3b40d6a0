"""Metrics of managed rollouts: how many began, and their results.

The leader counts them when it has written the status. A new process counts from 0, and does not count
what the status contains already. At most one step is lost: that of a status whose write was not answered
before the process or the connection ended.
"""

from prometheus_client import Counter
from prometheus_client.registry import CollectorRegistry

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.rollout_results import RolloutResult, rollout_results


class RolloutMetrics:
    """The counter `dynamo_operator_rollouts_total`, in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = Counter(
            "dynamo_operator_rollouts",
            "Managed rollouts of workers: `started`, then `completed` or `superseded` by another "
            "change. `deadline_exceeded` ends none.",
            ("result",),
            registry=registry,
        )
        # All of them are there from the start: an increase from nothing to 1 is none for Prometheus.
        self._counts = {each: counter.labels(each.value) for each in RolloutResult}

    def written(self, before: DynamoGraphDeployment, after: DynamoGraphDeployment) -> None:
        """Count what is new in the status of `after`, which was just written onto `before`."""
        for each in rollout_results(before, after):
            self._counts[each].inc()
