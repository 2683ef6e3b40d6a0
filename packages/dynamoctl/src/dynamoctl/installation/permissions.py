"""Every permission of the operator, with the reason; the source of the chart's roles, a page and tests.

Kubernetes lets no client grant permissions that it does not hold. So the operator holds the few of the
discovery Role, and may `bind` the ClusterRoles of planners and the like by name, without holding theirs.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from dynamo_graphs.reader import Reading
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.kinds import SelfSubjectAccessReview, SubjectAccessReview, question


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


_READ = ("get", "list", "watch")
# An apply is a patch; of an object that is not there yet, it is a create as well.
_APPLY = ("create", "patch")
_MANAGE = (*_READ, *_APPLY, "delete")

NVIDIA = "nvidia.com"
_RBAC = "rbac.authorization.k8s.io"
_LEASES = "coordination.k8s.io"
_GRAPH_KINDS = (
    "dynamographdeployments",
    "dynamocomponentdeployments",
    "dynamographdeploymentscalingadapters",
)
_LEGACY_KINDS = ("dynamodeployments", "dynamonimdeployments", "dynamonimrequests")
_LEGACY_SECRETS = ("yatai-regcred", "yatai-api-token")
"""The logins of builds at their registry and at the store of archives."""
MARKER_LEASE = "dynamo-operator-namespace-scope"


def _status(*kinds: str, why: str) -> Rule:
    return Rule(NVIDIA, tuple(f"{kind}/status" for kind in kinds), ("patch",), why)


def _finalizers(*kinds: str) -> Rule:
    return Rule(
        NVIDIA,
        tuple(f"{kind}/finalizers" for kind in kinds),
        ("update",),
        "Sets them as owners with foreground deletion; some clusters require this permission for "
        "it.",
    )


def _certificate(of: str, name: Name, feature: Feature) -> tuple[Rule, Rule]:
    """Keep a certificate in a Secret: two rules, since `create` cannot be limited to a name."""
    makes = (
        f"Creates the Secret with the certificate of its {of}. This rule alone changes no Secret."
    )
    renews = "Renews that certificate, which all replicas share."
    secrets, own = ("secrets",), Where.OWN
    return (
        Rule("", secrets, ("create",), makes, where=own, feature=feature),
        Rule("", secrets, (*_READ, "patch"), renews, where=own, feature=feature, names=(name,)),
    )


def _with(feature: Feature, *rules: Rule) -> tuple[Rule, ...]:
    """The rules with that feature."""
    return tuple(replace(rule, feature=feature) for rule in rules)


RULES: tuple[Rule, ...] = (
    Rule(
        NVIDIA,
        _GRAPH_KINDS,
        _MANAGE,
        "Reads graphs, creates their components and scaling adapters, records its choices on them.",
    ),
    _status(*_GRAPH_KINDS, why="Writes their status."),
    _finalizers(*_GRAPH_KINDS),
    Rule(
        NVIDIA,
        ("dynamocomponentdeployments/scale",),
        ("get", "patch"),
        "Scales down workers of an old revision.",
    ),
    Rule(
        NVIDIA,
        ("dynamomodels",),
        (*_READ, "patch"),
        "Reads models, and sets a finalizer on those that pods have loaded.",
    ),
    _status("dynamomodels", why="Writes their status."),
    Rule(
        NVIDIA,
        ("dynamographdeploymentrequests",),
        (*_READ, "patch"),
        "Reads requests, and stores profiling results on them.",
    ),
    _status("dynamographdeploymentrequests", why="Writes their status."),
    _finalizers("dynamographdeploymentrequests"),
    Rule("batch", ("jobs",), _MANAGE, "Runs the profiler."),
    Rule(
        NVIDIA,
        ("dynamoworkermetadatas",),
        (*_READ, "create", "update", "patch", "delete"),
        "Grants it to the pods of a graph, which discover each other through these objects.",
    ),
    Rule(
        "",
        ("endpoints",),
        _READ,
        "Grants it to the pods of a graph, which discover each other through them.",
    ),
    Rule(
        "discovery.k8s.io",
        ("endpointslices",),
        _READ,
        "Finds the pods that serve a base model, and grants it to the pods of a graph, which "
        "discover each other through them.",
    ),
    Rule(
        _RBAC,
        ("roles", "rolebindings"),
        _MANAGE,
        "Creates the discovery Role of each graph, and binds it and the ClusterRoles below.",
    ),
    Rule(
        _RBAC,
        ("clusterroles",),
        ("bind",),
        "Binds these, and no others, to ServiceAccounts of planners, endpoint pickers and "
        "profiling Jobs.",
        where=Where.CLUSTER,
        feature=Feature.CLUSTER_WIDE,
        names=(Name.PLANNER_ROLE, Name.EPP_ROLE, Name.PROFILING_ROLE, Name.PROFILING_NODES),
    ),
    Rule(
        _RBAC,
        ("clusterrolebindings",),
        ("get", "patch"),
        "Adds the ServiceAccounts of profiling Jobs that discover GPUs, until their requests end.",
        where=Where.CLUSTER,
        feature=Feature.CLUSTER_WIDE,
        names=(Name.PROFILING_NODES,),
    ),
    Rule(
        "", ("serviceaccounts", "services", "configmaps"), _MANAGE, ("Creates those of each graph.")
    ),
    Rule(
        "",
        ("persistentvolumeclaims",),
        (*_READ, *_APPLY),
        "Creates PVCs that graphs request; those without `retain` are deleted with their graph.",
    ),
    Rule("apps", ("deployments",), _MANAGE, "Runs single-node components."),
    Rule(
        "apps",
        ("controllerrevisions",),
        _MANAGE,
        "Keeps former specs of graphs for `dynamoctl rollout undo`.",
    ),
    Rule("networking.k8s.io", ("ingresses",), _MANAGE, "Exposes frontends."),
    Rule(
        "policy",
        ("poddisruptionbudgets",),
        _MANAGE,
        "Limits evictions from a service.",
    ),
    Rule(
        "",
        ("pods",),
        _READ,
        ("Reports why a graph is not ready, and finds the pods of its models."),
    ),
    Rule("", ("events",), _APPLY, "Reports actions and problems to users."),
    Rule(
        "",
        ("secrets",),
        ("list", "watch"),
        "Finds pull secrets by the registries in them. Kubernetes cannot restrict listing to "
        "Secrets of one type, so this rule is wider than its use.",
    ),
    Rule(
        "",
        ("secrets",),
        _MANAGE,
        "Generates or copies the SSH keys in namespaces with multinode TensorRT-LLM.",
        feature=Feature.SSH_KEYS,
        names=(Name.SSH_SECRET,),
    ),
    Rule(
        "",
        ("secrets",),
        _READ,
        "Reads the SSH keys that an administrator shares with all namespaces.",
        where=Where.OWN,
        feature=Feature.SSH_KEYS,
        names=(Name.SSH_SECRET,),
    ),
    Rule(
        "apiextensions.k8s.io",
        ("customresourcedefinitions",),
        _READ,
        "Detects optional CRDs at runtime. Without it the operator checks only at start.",
        where=Where.CLUSTER,
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("create",),
        "Creates the Lease for leader election.",
        where=Where.ELECTION,
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("get", "patch"),
        "Acquires, renews and releases that Lease.",
        where=Where.ELECTION,
        names=(Name.ELECTION_LEASE,),
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("list", "watch"),
        "Stays out of namespaces that have an operator of their own.",
        feature=Feature.CLUSTER_WIDE,
        names=(MARKER_LEASE,),
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("create",),
        "Creates the Lease that claims its namespace.",
        feature=Feature.RESTRICTED,
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("get", "patch", "delete"),
        "Renews that Lease, and deletes it on shutdown.",
        feature=Feature.RESTRICTED,
        names=(MARKER_LEASE,),
    ),
    *_certificate("webhooks", Name.WEBHOOK_SECRET, Feature.OWN_CERTIFICATE),
    Rule(
        "admissionregistration.k8s.io",
        ("validatingwebhookconfigurations",),
        _READ,
        "Reports ready only when the API server trusts the certificate of its webhooks.",
        where=Where.CLUSTER,
        feature=Feature.WEBHOOKS,
        names=(Name.WEBHOOK_CONFIGURATION,),
    ),
    Rule(
        "admissionregistration.k8s.io",
        ("validatingwebhookconfigurations",),
        ("patch",),
        "Writes that certificate's CA. This permission suffices to intercept requests of the "
        "whole cluster, so a restricted operator does not have it.",
        where=Where.CLUSTER,
        feature=Feature.OWN_BUNDLE,
        names=(Name.WEBHOOK_CONFIGURATION,),
    ),
    *_certificate("metrics", Name.METRICS_SECRET, Feature.METRICS_CERTIFICATE),
    Rule(
        "authorization.k8s.io",
        ("subjectaccessreviews",),
        ("create",),
        "Checks whether a namespace accepts graphs from requests in another one, and whether "
        "their authors may create them there.",
        where=Where.CLUSTER,
        feature=Feature.CLUSTER_WIDE,
    ),
    *_with(
        Feature.METRICS_REVIEW,
        Rule(
            "authentication.k8s.io",
            ("tokenreviews",),
            ("create",),
            "Authenticates readers of its metrics.",
            where=Where.CLUSTER,
        ),
        Rule(
            "authorization.k8s.io",
            ("subjectaccessreviews",),
            ("create",),
            "Authorizes readers of its metrics.",
            where=Where.CLUSTER,
        ),
    ),
    *_with(
        Feature.GROVE,
        Rule("grove.io", ("podcliquesets",), _MANAGE, "Runs graphs as gangs."),
        Rule(
            "grove.io",
            ("podcliques", "podcliquescalinggroups"),
            _READ,
            "Reads the status of a gang.",
        ),
        Rule(
            "grove.io",
            ("podcliques/scale", "podcliquescalinggroups/scale"),
            ("get", "patch"),
            "Scales members of a gang.",
        ),
    ),
    Rule(
        "scheduling.run.ai",
        ("queues",),
        _READ,
        "Checks the queue of a gang.",
        where=Where.CLUSTER,
        feature=Feature.KAI,
    ),
    *_with(
        Feature.LEADER_WORKER_SET,
        Rule(
            "leaderworkerset.x-k8s.io",
            ("leaderworkersets",),
            _MANAGE,
            "Runs multinode components.",
        ),
        Rule(
            "scheduling.volcano.sh",
            ("podgroups",),
            _MANAGE,
            "Schedules their pods together.",
        ),
    ),
    Rule(
        "apps",
        ("statefulsets",),
        ("list", "watch"),
        "Reads which templates the leaders of LeaderWorkerSets run.",
    ),
    Rule(
        "networking.istio.io",
        ("virtualservices",),
        _MANAGE,
        "Exposes frontends through a mesh.",
        feature=Feature.ISTIO,
    ),
    Rule(
        "inference.networking.k8s.io",
        ("inferencepools",),
        _MANAGE,
        "Creates the pool of an endpoint picker.",
        feature=Feature.INFERENCE_POOL,
    ),
    *_with(
        Feature.LEGACY_KINDS,
        Rule(
            NVIDIA,
            ("dynamodeployments",),
            _READ,
            "Reads what users deploy of the older generation.",
        ),
        Rule(
            NVIDIA,
            (*_LEGACY_KINDS[1:], "dynamonims"),
            _MANAGE,
            "Creates their components, and requests for their images, with what these built.",
        ),
        _status(*_LEGACY_KINDS, why="Writes their status."),
        _finalizers(*_LEGACY_KINDS),
        Rule(
            "autoscaling",
            ("horizontalpodautoscalers",),
            _MANAGE,
            "Scales their components.",
        ),
        Rule(
            "",
            ("secrets",),
            _MANAGE,
            "Gives builds their logins at the registry and at the store of archives.",
            names=_LEGACY_SECRETS,
        ),
    ),
)
"""The permissions of the operator."""


_ALL = ("get", "list", "watch", "create", "update", "patch", "delete")
_WHOLE_CLUSTER = Feature.CLUSTER_WIDE


# The operator binds these roles by name and holds none of them. In a restricted installation they
# are Roles of its namespace with their ServiceAccounts, because a restricted operator may not bind
# ClusterRoles.
@dataclass(frozen=True, slots=True)
class Granted:
    """A role of such pods; `name` is the suffix of the ClusterRole.

    `account`, `role` and `binding` are the names in a restricted installation.
    """

    name: str
    account: str
    role: str
    binding: str
    rules: tuple[Rule, ...]


_FIND_WORKERS = (
    Rule("discovery.k8s.io", ("endpointslices",), _READ, "Discovers workers."),
    Rule(NVIDIA, ("dynamoworkermetadatas",), _ALL, "Discovers workers, and registers itself."),
)

PLANNER = Granted(
    "planner",
    "planner-serviceaccount",
    "planner-role",
    "planner-binding",
    (
        Rule(
            NVIDIA,
            ("dynamographdeployments", "dynamocomponentdeployments"),
            ("get", "list", "create", "update", "patch"),
            "Scales the services of its graph.",
        ),
        Rule(
            NVIDIA,
            ("dynamographdeploymentscalingadapters/scale",),
            ("patch",),
            "Scales services that have an adapter.",
        ),
        *_FIND_WORKERS,
    ),
)
EPP = Granted(
    "epp",
    "epp-serviceaccount",
    "epp-role",
    "epp-binding",
    (
        Rule(
            "inference.networking.x-k8s.io",
            ("inferencepools", "inferenceobjectives", "inferencemodelrewrites"),
            _READ,
            "Reads its picking rules.",
        ),
        Rule("inference.networking.k8s.io", ("inferencepools",), _READ, "Reads its pool."),
        Rule("", ("pods",), _READ, "Reads the pods to pick from."),
        *_FIND_WORKERS,
    ),
)
PROFILING = Granted(
    "dgdr-profiling",
    "dgdr-profiling-job",
    "dgdr-profiling-job",
    "dgdr-profiling-job",
    (
        Rule(
            "",
            ("configmaps",),
            ("create", "get", "update", "patch", "delete"),
            "Writes its results.",
        ),
        Rule(NVIDIA, ("dynamographdeploymentrequests",), ("get",), "Reads its request."),
        Rule(
            NVIDIA,
            ("dynamographdeployments",),
            ("get", "list", "watch", "create", "delete"),
            "Creates temporary graphs.",
        ),
        # Not `create`: a pod may name any ServiceAccount of its namespace, the operator's too.
        Rule("", ("pods",), ("get", "list", "delete"), "Watches and deletes their pods."),
        Rule("", ("pods/log",), ("get",), "Reads why one failed."),
    ),
)
PROFILING_NODES = (Rule("", ("nodes",), _READ, "Discovers GPUs.", feature=_WHOLE_CLUSTER),)
"""Separate, because nodes are cluster-scoped: a RoleBinding cannot grant them."""
GRANTED = (PLANNER, EPP, PROFILING)


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


def _checkable(namespace: str) -> Sequence[Rule]:
    """The rules that are the same in all installations: those without names that an installation chooses."""
    modes = {Feature.ALWAYS, Feature.RESTRICTED if namespace else Feature.CLUSTER_WIDE}
    return [
        rule
        for rule in RULES
        if rule.where is Where.GRAPHS
        and rule.feature in modes
        and not any(isinstance(name, Name) for name in rule.names)
    ]


def _asked(namespace: str) -> Iterator[dict[str, str]]:
    for rule in _checkable(namespace):
        for qualified in rule.resources:
            resource, _, subresource = qualified.partition("/")
            for verb in rule.verbs:
                attributes = {"group": rule.group, "resource": resource, "verb": verb}
                attributes |= {"namespace": namespace, "subresource": subresource}
                attributes |= {"name": str(rule.names[0])} if rule.names else {}
                yield {key: value for key, value in attributes.items() if value or key == "group"}
