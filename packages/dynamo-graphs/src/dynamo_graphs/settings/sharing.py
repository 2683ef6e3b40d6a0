"""How several operators share the work: one leads, and one may have a namespace of its own."""

from typing import Annotated

from dynamo_graphs.settings.declare import Section, Setting


class LeaderElectionSettings(Section, frozen=True, kw_only=True):
    """Which of several operators acts."""

    enabled: Annotated[
        bool,
        Setting(
            "Act only while holding a Lease, so that several operators can run.", ("leader-elect",)
        ),
    ] = False
    id: Annotated[
        str,
        Setting("Name the Lease of the leader.", ("leader-election-id",)),
    ] = "dynamo.nvidia.com"
    namespace: Annotated[
        str,
        Setting(
            "Set the namespace of that Lease (default: the operator's own).",
            ("leader-election-namespace",),
        ),
    ] = ""
    lease_duration_seconds: Annotated[
        float,
        Setting(
            "Let another replica take the Lease this long after its last renewal.",
            ("leader-election-lease-duration",),
        ),
    ] = 15.0
    renew_deadline_seconds: Annotated[
        float,
        Setting(
            "Stop a leader that could not renew its Lease for this long.",
            ("leader-election-renew-deadline",),
        ),
    ] = 10.0
    retry_period_seconds: Annotated[
        float,
        Setting(
            "Renew or try to acquire the Lease at this interval.",
            ("leader-election-retry-period",),
        ),
    ] = 2.0


class NamespaceScopeSettings(Section, frozen=True, kw_only=True):
    """The Lease that excludes our namespace from a cluster-wide operator."""

    lease_duration_seconds: Annotated[
        float,
        Setting(
            "Set the duration of the Lease that marks the restricted namespace as owned.",
            ("namespace-scope-lease-duration",),
        ),
    ] = 30.0
    renew_interval_seconds: Annotated[
        float,
        Setting(
            "Renew that Lease at this interval.",
            ("namespace-scope-lease-renew-interval",),
        ),
    ] = 10.0
