"""Which operators work in a cluster, by the Leases that they hold."""

from collections.abc import Sequence
from datetime import datetime

from dynamoctl.installation.checks import CheckResult, Finding
from kube_runtime.kind import Key
from kube_runtime.times import seconds_between
from kube_runtime.types.coordination import Lease

LEADER = "Cluster-wide Operator"


def leader(lease: Lease | None, now: datetime, *, is_before: bool) -> Finding:
    """Whether an operator leads in the whole cluster. Before an installation, one is a second one."""
    if lease is None or not lease.spec.holder_identity:
        return Finding(LEADER, CheckResult.OK, "no operator leads")
    holder = lease.spec.holder_identity
    if not _is_held(lease, now):
        return Finding(
            LEADER, CheckResult.OK, (f"no operator leads; {holder} did until its Lease expired")
        )
    text = f"{holder} leads, by Lease {lease.metadata.namespace}/{lease.metadata.name}"
    if not is_before:
        return Finding(LEADER, CheckResult.OK, text)
    remedy = "upgrade that release, or install for one namespace: namespaceRestriction.enabled=true"
    return Finding(LEADER, CheckResult.WARNING, text, remedy)


def is_led(lease: Lease | None, now: datetime) -> bool:
    """Whether an operator holds the Lease."""
    return lease is not None and bool(lease.spec.holder_identity) and _is_held(lease, now)


def without_election(accounts: Sequence[Key], *, is_before: bool) -> Finding:
    """Cluster-wide operators that take part in no election, by their ServiceAccounts."""
    names = ", ".join(map(str, accounts))
    text = f"{names} runs without leader election, so that a second one would act beside it"
    remedy = "start it with --leader-elect, as the chart does, before another one is installed"
    result = CheckResult.WARNING if is_before or len(accounts) > 1 else CheckResult.OK
    return Finding(LEADER, result, text, remedy if result is CheckResult.WARNING else "")


def _is_held(lease: Lease, now: datetime) -> bool:
    age = seconds_between(lease.spec.renew_time, now)
    return age is not None and age < (lease.spec.lease_duration_seconds or 0)
