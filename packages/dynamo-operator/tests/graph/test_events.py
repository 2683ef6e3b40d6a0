"""Events of a graph report each change of its status once."""

import pytest

from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
    RestartStatus,
    RollingUpdateStatus,
)
from dynamo_operator.graph.status import status_events
from kube_runtime.types.meta import Condition


def restart(id_: str, phase: str) -> DynamoGraphDeploymentStatus:
    return DynamoGraphDeploymentStatus(restart=RestartStatus(id_, phase))


def rollout(phase: str) -> DynamoGraphDeploymentStatus:
    update = RollingUpdateStatus(phase, from_hash="aaaa", to_hash="bbbb")
    return DynamoGraphDeploymentStatus(rolling_update=update)


def of(type_: str, status: str, reason: str = "r") -> DynamoGraphDeploymentStatus:
    return DynamoGraphDeploymentStatus(conditions=(Condition(type_, status, reason, "m"),))


LATE = of("Progressing", "False", "progress_deadline_exceeded")


NOTHING = DynamoGraphDeploymentStatus()


@pytest.mark.parametrize(
    ("before", "after", "reasons"),
    [
        (NOTHING, NOTHING, []),
        (NOTHING, restart("a", "Restarting"), ["RestartStarted"]),
        (restart("a", "Completed"), restart("b", "Restarting"), ["RestartStarted"]),
        (restart("a", "Restarting"), restart("a", "Completed"), ["RestartCompleted"]),
        (restart("a", "Restarting"), restart("b", "Superseded"), ["RestartSuperseded"]),
        (NOTHING, restart("a", "Completed"), []),
        (restart("a", "Restarting"), NOTHING, []),
        (NOTHING, rollout("InProgress"), ["RollingUpdateStarted"]),
        (rollout("InProgress"), rollout("Completed"), ["RollingUpdateCompleted"]),
        (NOTHING, rollout("Completed"), []),
        (NOTHING, of("Suspended", "Unknown"), []),
        (of("Suspended", "Unknown"), of("Suspended", "True"), ["Suspended"]),
        (of("Suspended", "Unknown"), of("Suspended", "False"), ["Resumed"]),
        (of("Progressing", "True"), LATE, ["ProgressDeadlineExceeded"]),
        (LATE, of("Progressing", "True"), []),
        (of("Progressing", "True"), of("Progressing", "False", "ValidationFailed"), []),
    ],
)
def test_events_between_two_statuses(
    before: DynamoGraphDeploymentStatus, after: DynamoGraphDeploymentStatus, reasons: list[str]
) -> None:
    old, new = DynamoGraphDeployment(status=before), DynamoGraphDeployment(status=after)
    assert reasons == [event.reason for event in status_events(old, new)]
    assert [] == list(status_events(new, new))
