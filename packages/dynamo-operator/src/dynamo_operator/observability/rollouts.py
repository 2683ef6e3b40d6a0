"""What is counted of managed rollouts: how many began, and what became of them.

They are counted when the status that says so was written, so by the leader only. A process that starts
counts from 0, and does not count again what the status says already. What is lost is never more than
the step of a status whose write was not answered before the process, or the connection, came to its end.
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
        """Count what the status of `after`, which was just written onto `before`, says anew."""
        for each in rollout_results(before, after):
            self._counts[each].inc()
