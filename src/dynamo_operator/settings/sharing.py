"""How several operators share the work: one leads, and one may have a namespace of its own."""

from typing import Annotated

from dynamo_operator.settings.declare import Section, Setting


class LeaderElectionSettings(Section, frozen=True, kw_only=True):
    """Which of several operators acts."""

    enabled: Annotated[
        bool,
        Setting(
            "Act only while holding a Lease, so that several operators may run.", ("leader-elect",)
        ),
    ] = False
    id: Annotated[
        str,
        Setting("Name of the Lease.", ("leader-election-id",)),
    ] = "dynamo.nvidia.com"
    namespace: Annotated[
        str,
        Setting(
            "Namespace of the Lease. Empty means the operator's own.",
            ("leader-election-namespace",),
        ),
    ] = ""
    lease_duration_seconds: Annotated[
        float,
        Setting(
            "After how long others may take the Lease of a leader that went silent.",
            ("leader-election-lease-duration",),
        ),
    ] = 15.0
    renew_deadline_seconds: Annotated[
        float,
        Setting(
            "How long a leader that cannot renew goes on before it stops.",
            ("leader-election-renew-deadline",),
        ),
    ] = 10.0
    retry_period_seconds: Annotated[
        float,
        Setting(
            "How often the Lease is renewed, or tried for.",
            ("leader-election-retry-period",),
        ),
    ] = 2.0


class NamespaceScopeSettings(Section, frozen=True, kw_only=True):
    """The Lease that tells a cluster-wide operator to keep out of our namespace."""

    lease_duration_seconds: Annotated[
        float,
        Setting(
            "How long that Lease counts without renewal. With a restricted namespace only.",
            ("namespace-scope-lease-duration",),
        ),
    ] = 30.0
    renew_interval_seconds: Annotated[
        float,
        Setting(
            "How often that Lease is renewed. With a restricted namespace only.",
            ("namespace-scope-lease-renew-interval",),
        ),
    ] = 10.0
