"""A permission: a rule of a role, with its reason and the installations that need it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from kube_runtime.kind import Object


class Where(Enum):
    """Where the objects of a rule are; each place has its own role."""

    GRAPHS = "graphs"
    """Namespaces with graphs: all of them, or the one of a restricted operator."""
    OWN = "own"
    """The operator's own namespace."""
    ELECTION = "election"
    """The namespace of the Lease by which replicas choose their leader."""
    CLUSTER = "cluster"
    """Cluster-scoped objects."""


class Feature(Enum):
    """A feature of an installation; without it the rule is left out."""

    ALWAYS = "always"
    CLUSTER_WIDE = "clusterWide"
    RESTRICTED = "restricted"
    WEBHOOKS = "webhooks"
    OWN_CERTIFICATE = "ownCertificate"
    OWN_BUNDLE = "ownBundle"
    METRICS_CERTIFICATE = "metricsCertificate"
    METRICS_REVIEW = "metricsReview"
    SSH_KEYS = "sshKeys"
    GROVE = "grove"
    KAI = "kai"
    LEADER_WORKER_SET = "leaderWorkerSet"
    ISTIO = "istio"
    INFERENCE_POOL = "inferencePool"
    LEGACY_KINDS = "legacyKinds"


class Name(Enum):
    """Placeholders for object names that an installation chooses."""

    ELECTION_LEASE = "$electionLease"
    SSH_SECRET = "$sshSecret"  # noqa: S105  the name of one
    WEBHOOK_SECRET = "$webhookSecret"  # noqa: S105  the name of one
    METRICS_SECRET = "$metricsSecret"  # noqa: S105  the name of one
    WEBHOOK_CONFIGURATION = "$webhookConfiguration"
    PLANNER_ROLE = "$plannerRole"
    EPP_ROLE = "$eppRole"
    PROFILING_ROLE = "$profilingRole"
    PROFILING_NODES = "$profilingNodes"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a role, and why the operator needs it.

    `names` limits it to these objects; empty is all objects of the resources.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    where: Where = Where.GRAPHS
    feature: Feature = Feature.ALWAYS
    names: tuple[Name | str, ...] = ()

    def as_policy(self, names: Mapping[Name, str]) -> Object:
        """The rule as roles have it."""
        rule: Object = {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        if self.names:
            rule["resourceNames"] = [
                names[name] if isinstance(name, Name) else name for name in self.names
            ]
        return rule


def needed(rules: Iterable[Rule], features: Collection[Feature], where: Where) -> Iterator[Rule]:
    """The rules of one role in an installation that has these features."""
    for rule in rules:
        if rule.where is where and (rule.feature is Feature.ALWAYS or rule.feature in features):
            yield rule


def policy(
    rules: Iterable[Rule],
    features: Collection[Feature],
    where: Where,
    names: Mapping[Name, str],
) -> list[Object]:
    """The `rules` of one role in an installation that has these features and names."""
    return [rule.as_policy(names) for rule in needed(rules, features, where)]


def as_data(rule: Rule) -> Object:
    """The rule as the chart reads it."""
    return {
        "why": rule.why,
        "where": rule.where.value,
        "feature": rule.feature.value,
        **rule.as_policy({name: name.value for name in Name}),
    }
