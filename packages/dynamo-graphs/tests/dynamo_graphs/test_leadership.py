"""Whether an operator runs: only a Lease that is renewed, or none at all for a while, says so."""

from datetime import UTC, datetime

import pytest

from dynamo_graphs.leadership import UNKNOWN, Leadership, absence
from kube_runtime.types.kinds import Lease, LeaseSpec
from kube_runtime.types.meta import Metadata

NOW = datetime(2026, 1, 1, 0, 12, tzinfo=UTC)
HELD, LOST = "2026-01-01T00:11:50.000000Z", "2026-01-01T00:07:00.000000Z"


def lease(renewed: str, holder: str = "operator-7f9") -> Lease:
    metadata = Metadata(name="dynamo.nvidia.com", namespace="kube-system")
    return Lease(metadata=metadata, spec=LeaseSpec(holder, lease_duration_seconds=15, renew_time=renewed))


@pytest.mark.parametrize("is_waiting", [True, False])
@pytest.mark.parametrize(
    "known",
    [UNKNOWN, Leadership(lease(HELD)), Leadership(lease(LOST), lease(HELD)), Leadership(None, lease(HELD))],
)
def test_an_operator_that_runs_or_cannot_be_seen_is_not_reported(known: Leadership, is_waiting: bool) -> None:
    assert "" == absence(known, NOW, is_waiting=is_waiting)


@pytest.mark.parametrize("is_waiting", [True, False])
def test_a_lease_that_expired_or_was_given_up_names_its_holder_and_since_when(is_waiting: bool) -> None:
    expired = absence(Leadership(lease(LOST), lease(LOST)), NOW, is_waiting=is_waiting)
    assert expired.startswith("No operator runs: operator-7f9 has not renewed its Lease kube-system/dynamo")
    assert "since 2026-01-01T00:07:00Z (5 minutes)" in expired
    assert "gave up its Lease" in absence(Leadership(lease(LOST, "")), NOW, is_waiting=is_waiting)


def test_without_a_lease_only_an_object_that_waits_shows_that_none_runs() -> None:
    assert "" == absence(Leadership(), NOW, is_waiting=False)
    assert "No operator runs" in absence(Leadership(), NOW, is_waiting=True)
