"""The leader of a cluster, from a Lease that any user may have written."""

from datetime import UTC, datetime

import pytest

from dynamoctl.installation.checks import CheckResult, leader, without_election
from kube_runtime.kind import Key
from kube_runtime.types.kinds import Lease, LeaseSpec
from kube_runtime.types.meta import Metadata

NOW = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("renewed", "said"),
    [
        ("2026-01-01T00:00:00.000000Z", "leads, by Lease"),
        ("2025-12-31T23:59:50.000000Z", "until its Lease expired"),
        ("0000-01-01T00:00:00.000000Z", "until its Lease expired"),
        (None, "until its Lease expired"),
    ],
)
def test_a_holder_leads_while_its_lease_lasts(renewed: str | None, said: str) -> None:
    spec = LeaseSpec(holder_identity="pod-1", lease_duration_seconds=15, renew_time=renewed)
    lease = Lease(Metadata("dynamo.nvidia.com", "kube-system"), spec=spec)
    assert said in leader(lease, NOW, is_before=False).text


@pytest.mark.parametrize(
    ("count", "is_before", "result"),
    [(1, False, CheckResult.OK), (1, True, CheckResult.WARNING), (2, False, CheckResult.WARNING)],
)
def test_an_operator_without_election_is_not_no_operator(
    count: int, is_before: bool, result: CheckResult
) -> None:
    accounts = [Key("dynamo-system", f"operator-{number}") for number in range(count)]
    found = without_election(accounts, is_before=is_before)
    assert result is found.verdict
    assert found.text.startswith("dynamo-system/operator-0")
    assert ("--leader-elect" in found.remedy) is (result is CheckResult.WARNING)
