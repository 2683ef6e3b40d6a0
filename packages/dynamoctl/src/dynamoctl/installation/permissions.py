"""Every permission of the operator, with the reason: the source of the chart's roles, a page and tests.

Kubernetes lets no client grant permissions that it does not hold. So the operator holds the few of the
discovery Role, and may `bind` the ClusterRoles of planners and the like by name, without holding theirs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum, StrEnum
from importlib.resources import files

import msgspec

from dynamo_graphs.reader import Reading
from kube_runtime.types.kinds import ReviewStatus, SubjectAccessReview, question
from kube_runtime.types.meta import Key, Kind, Object, Resource


class SelfSubjectAccessReview(Resource):
    """Asks whether the user of the request may do something."""

    KIND = Kind("authorization.k8s.io", "v1", "SelfSubjectAccessReview", namespaced=False)

    status: ReviewStatus = ReviewStatus()


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
    CONVERSION = "conversion"
    MIGRATION = "migration"
    METRICS_CERTIFICATE = "metricsCertificate"
    METRICS_REVIEW = "metricsReview"
    SSH_KEYS = "sshKeys"
    GROVE = "grove"
    KAI = "kai"
    LEADER_WORKER_SET = "leaderWorkerSet"
    ISTIO = "istio"
    INFERENCE_POOL = "inferencePool"
    LEGACY_KINDS = "legacyKinds"


class Name(StrEnum):
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


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `permissions.toml`: a rule of a role, and why the operator needs it.

    `names` limits it to these objects, some of them a `Name`; empty is all objects of the resources.
    """

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    where: Where = Where.GRAPHS
    feature: Feature = Feature.ALWAYS
    names: tuple[str, ...] = ()

    def as_policy(self, names: Mapping[Name, str]) -> Object:
        """The rule as roles have it."""
        rule: Object = {
            "apiGroups": [self.group],
            "resources": list(self.resources),
            "verbs": list(self.verbs),
        }
        if self.names:
            rule["resourceNames"] = [
                names[Name(name)] if name.startswith("$") else name for name in self.names
            ]
        return rule


def needed(rules: Iterable[Rule], features: Collection[Feature], where: Where) -> Iterator[Rule]:
    """The rules of one role in an installation that has these features."""
    on = {Feature.ALWAYS, *features}
    return (rule for rule in rules if rule.where is where and rule.feature in on)


def policy(
    rules: Iterable[Rule], features: Collection[Feature], where: Where, names: Mapping[Name, str]
) -> list[Object]:
    """The `rules` of one role in an installation that has these features and names."""
    return [rule.as_policy(names) for rule in needed(rules, features, where)]


NVIDIA = "nvidia.com"


# The operator binds these roles by name and holds none of them. In a restricted installation they are Roles
# of its namespace with their ServiceAccounts, because a restricted operator may not bind ClusterRoles.
class Granted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A role of such pods; `name` is the suffix of the ClusterRole.

    `account`, `role` and `binding` are the names in a restricted installation.
    """

    name: str
    account: str
    role: str
    binding: str
    rules: tuple[Rule, ...]


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    operator: tuple[Rule, ...]
    profiling_nodes: tuple[Rule, ...]
    granted: tuple[Granted, ...]


_FILE = msgspec.toml.decode(
    files("dynamoctl.installation").joinpath("permissions.toml").read_bytes(), type=_File
)
RULES = _FILE.operator
"""The permissions of the operator."""
PROFILING_NODES = _FILE.profiling_nodes
"""Separate, because nodes are cluster-scoped: a RoleBinding cannot grant them."""
GRANTED = _FILE.granted
PLANNER, EPP, PROFILING = GRANTED


async def missing(reading: Reading, user: str, namespace: str) -> list[str]:
    """The permissions that a user lacks, of the rules that every installation has.

    "" as `user` is the current user. `namespace` is that of a restricted operator, "" for a cluster-wide one.
    """
    lacks: list[str] = []
    for asked in _asked(namespace):
        if not await _may(reading, user, asked):
            lacks.append(f"{asked['verb']} {Key(asked['group'], asked['resource'])}")
    return lacks


async def may_read(reading: Reading, user: str, kind: Kind, namespace: str) -> bool:
    """Whether a user ("": the current one) may list and watch a kind in a namespace ("": in all)."""
    asked = {"group": kind.group, "resource": kind.plural}
    if namespace and kind.namespaced:
        asked["namespace"] = namespace
    for verb in ("list", "watch"):
        if not await _may(reading, user, {**asked, "verb": verb}):
            return False
    return True


async def _may(reading: Reading, user: str, attributes: dict[str, str]) -> bool:
    asked: Object = {"resourceAttributes": attributes}
    if not user:
        review = question(SelfSubjectAccessReview.KIND, asked)
        return (await reading.client.create(SelfSubjectAccessReview, review)).status.allowed
    groups = ["system:serviceaccounts", "system:authenticated"]
    review = question(SubjectAccessReview.KIND, {**asked, "user": user, "groups": groups})
    return (await reading.client.create(SubjectAccessReview, review)).status.allowed


def _asked(namespace: str) -> Iterator[dict[str, str]]:
    mode = Feature.RESTRICTED if namespace else Feature.CLUSTER_WIDE
    for rule in needed(RULES, (mode,), Where.GRAPHS):
        if any(name.startswith("$") for name in rule.names):
            continue  # an installation chooses them
        for qualified in rule.resources:
            resource, _, subresource = qualified.partition("/")
            for verb in rule.verbs:
                attributes = {"group": rule.group, "resource": resource, "verb": verb}
                attributes |= {"namespace": namespace, "subresource": subresource}
                attributes |= {"name": str(rule.names[0])} if rule.names else {}
                yield {key: value for key, value in attributes.items() if value or key == "group"}
