"""A workload is ready when it runs the newest template, in the wanted number, and nothing else."""

from typing import Any

import msgspec
import pytest

from dynamo_operator.component.status import deployment_readiness, deployment_replicas
from kube_runtime.types.kinds import Deployment, DeploymentStatus
from kube_runtime.types.meta import Condition, Metadata


def _deployment(wanted: int = 2, *, paused: bool = False, **status: Any) -> Deployment:
    complete = {
        "observed_generation": 3,
        "replicas": wanted,
        "updated_replicas": wanted,
        "ready_replicas": wanted,
        "available_replicas": wanted,
    }
    spec = msgspec.json.encode({"replicas": wanted, "paused": paused})
    return Deployment(
        Metadata("d", generation=3), msgspec.Raw(spec), DeploymentStatus(**{**complete, **status})
    )


def test_a_complete_deployment_is_ready() -> None:
    readiness = deployment_readiness(_deployment())
    assert (True, "DeploymentReady", "Deployment is ready") == (
        readiness.is_ready,
        readiness.reason,
        readiness.message,
    )


def test_zero_wanted_replicas_are_ready() -> None:
    assert deployment_readiness(_deployment(0)).is_ready


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        ({"observed_generation": 2}, "its controller has not observed the newest spec yet"),
        ({"updated_replicas": 1}, "1 of 2 replicas are updated"),
        ({"replicas": 3}, "1 replicas of an older revision remain"),
        ({"replicas": 3, "updated_replicas": 3}, "1 surplus replicas remain"),
        ({"available_replicas": 1}, "1 of 2 replicas are available"),
        (
            {
                "available_replicas": 0,
                "conditions": (Condition("Progressing", "False", "x", "deadline exceeded"),),
            },
            "0 of 2 replicas are available; deadline exceeded",
        ),
        (
            {
                "updated_replicas": 0,
                "replicas": 0,
                "conditions": (Condition("ReplicaFailure", "True", "x", "exceeded quota"),),
            },
            "0 of 2 replicas are updated; exceeded quota",
        ),
    ],
)
def test_what_is_missing_is_the_cause(status: dict[str, Any], cause: str) -> None:
    readiness = deployment_readiness(_deployment(**status))
    assert not readiness.is_ready
    assert f"Deployment is not ready: {cause}" == readiness.message


def test_a_paused_deployment_is_not_ready() -> None:
    assert not deployment_readiness(_deployment(paused=True)).is_ready
    assert deployment_readiness(_deployment(0, paused=True)).is_ready


@pytest.mark.parametrize(
    ("status", "is_rolling", "has_older"),
    [
        ({"available_replicas": 1}, False, False),
        ({"updated_replicas": 1, "replicas": 1}, True, False),
        ({"updated_replicas": 1}, True, True),
        ({"replicas": 3}, True, True),
        ({"observed_generation": 2}, True, False),
    ],
)
def test_a_rollout_is_distinguished_from_pods_that_are_not_ready(
    status: dict[str, Any], *, is_rolling: bool, has_older: bool
) -> None:
    readiness = deployment_readiness(_deployment(**status))
    assert (is_rolling, has_older) == (readiness.is_rolling or readiness.is_ready, readiness.has_older)


def test_replicas_of_an_older_spec_are_not_counted_as_updated() -> None:
    status = DeploymentStatus(observed_generation=1, replicas=3, updated_replicas=3)
    behind = Deployment(Metadata("w", generation=2), status=status)
    assert (3, 0) == (deployment_replicas(behind).replicas, deployment_replicas(behind).updated_replicas)
