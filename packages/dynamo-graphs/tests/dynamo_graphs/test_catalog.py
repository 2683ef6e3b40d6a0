"""Every reason has a meaning and an advice, and every field of a service a row of the page."""

import runpy
from pathlib import Path

import pytest

from dynamo_graphs.catalog import MEANINGS, meaning
from dynamo_operator.features.suspension import SuspensionReason
from dynamo_operator.models.api import ModelReason
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import ComponentReason, GraphReason, PauseReason, ScalingReason
from kube_runtime.types.meta import Condition

TOOL = runpy.run_path(str(Path(__file__).parents[4] / "tools/status_page.py"))
REQUEST = DynamoGraphDeploymentRequest.KIND.name
KINDS = (GraphReason, ComponentReason, PauseReason, SuspensionReason, ScalingReason, ModelReason)


def test_every_reason_is_explained_with_advice() -> None:
    reasons = {reason for kind in KINDS for reason in kind}
    explained = {row.reason for row in MEANINGS if row.kind != REQUEST}
    assert reasons == explained, f"not in the catalog of conditions: {reasons - explained}"
    assert all(row.text and row.advice for row in MEANINGS)


@pytest.mark.parametrize(
    ("later", "own"),
    [
        (("Profiling", "False", "SweepingPrefill"), ("Profiling", "False", "ProfilingRunning")),
        (("Profiling", "False", "BuildingCurvesFailed"), ("Profiling", "False", "ProfilingFailed")),
        (
            ("DeploymentReady", "False", "DeploymentRejected"),
            ("DeploymentReady", "False", "DeploymentCreationFailed"),
        ),
        (("Succeeded", "True", "Deployed"), ("Succeeded", "True", "Ready")),
        (("Succeeded", "False", "Profiling"), ("Succeeded", "Unknown", "Profiling")),
        (("Succeeded", "False", "SweepingPrefillFailed"), ("Profiling", "False", "ProfilingFailed")),
    ],
)
def test_a_reason_of_v1beta1_is_explained_like_that_of_v1alpha1(
    later: tuple[str, str, str], own: tuple[str, str, str]
) -> None:
    row = meaning(REQUEST, Condition(*later, "Profiling failed: x"))
    assert row is not None
    assert row == meaning(REQUEST, Condition(*own))


def test_every_field_of_a_service_is_explained() -> None:
    page = TOOL["page"]()
    for name in ("scheduledReplicas", "runtimeNamespace", "blockedPods", "restarts"):
        assert f"| `{name}` | " in page
