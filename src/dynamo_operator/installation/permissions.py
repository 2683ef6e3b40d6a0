"""Every permission that the operator needs, with the reason. The chart, the docs and tests are made from it.

The hard part is to ask for no more than the code uses and still to grant what pods need: Kubernetes lets
nobody grant what he does not have. So the operator holds the few rights of the discovery Role itself, and may
`bind` the ClusterRoles of planners and the like by name, without holding what is in them.
"""

from dataclasses import replace

from dynamo_operator.installation.rule import Feature, Name, Rule, Where

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
MARKER_LEASE = "dynamo-operator-namespace-scope"


def _status(*kinds: str, why: str) -> Rule:
    return Rule(NVIDIA, tuple(f"{kind}/status" for kind in kinds), ("patch",), why)


def _finalizers(*kinds: str) -> Rule:
    return Rule(
        NVIDIA,
        tuple(f"{kind}/finalizers" for kind in kinds),
        ("update",),
        "Names them as owners that are deleted last; some clusters check this right for it.",
    )


def _certificate(of: str, name: Name, feature: Feature) -> tuple[Rule, Rule]:
    """What it takes to keep a certificate in a Secret: a creation cannot be limited to a name."""
    makes = f"Makes the Secret with the certificate of its {of}. By this right alone it changes no Secret."
    renews = "Renews that certificate, which all replicas share."
    secrets, own = ("secrets",), Where.OWN
    return (
        Rule("", secrets, ("create",), makes, where=own, feature=feature),
        Rule("", secrets, (*_READ, "patch"), renews, where=own, feature=feature, names=(name,)),
    )


def _with(feature: Feature, *rules: Rule) -> tuple[Rule, ...]:
    """The rules, for installations that have the feature."""
    return tuple(replace(each, feature=feature) for each in rules)


RULES: tuple[Rule, ...] = (
    Rule(
        NVIDIA,
        _GRAPH_KINDS,
        _MANAGE,
        "Reads graphs, makes their components and scaling adapters, records its choices on them.",
    ),
    _status(*_GRAPH_KINDS, why="Says what is true of them."),
    _finalizers(*_GRAPH_KINDS),
    Rule(
        NVIDIA,
        ("dynamocomponentdeployments/scale",),
        ("get", "patch"),
        "Takes replicas away from workers of an old generation.",
    ),
    Rule(
        NVIDIA,
        ("dynamomodels",),
        (*_READ, "patch"),
        "Reads models, and keeps a finalizer on those that pods have loaded.",
    ),
    _status("dynamomodels", why="Says which pods have loaded them."),
    Rule(
        NVIDIA,
        ("dynamographdeploymentrequests",),
        (*_READ, "patch"),
        "Reads requests, and keeps on them what profiling has found.",
    ),
    _status("dynamographdeploymentrequests", why="Says how far they are."),
    _finalizers("dynamographdeploymentrequests"),
    Rule("batch", ("jobs",), _MANAGE, "Runs the profiler."),
    Rule(
        NVIDIA,
        ("dynamoworkermetadatas",),
        (*_READ, "create", "update", "patch", "delete"),
        "Grants it to the pods of a graph, which find each other through these objects.",
    ),
    Rule(
        "",
        ("endpoints",),
        _READ,
        "Grants it to the pods of a graph, which find each other through them.",
    ),
    Rule(
        "discovery.k8s.io",
        ("endpointslices",),
        _READ,
        "Finds the pods that serve a base model, and grants it to the pods of a graph, which find each other "
        "through them.",
    ),
    Rule(
        _RBAC,
        ("roles", "rolebindings"),
        _MANAGE,
        "Makes the discovery Role of each graph, and binds it and the ClusterRoles below.",
    ),
    Rule(
        _RBAC,
        ("clusterroles",),
        ("bind",),
        "Binds these, and no other, to accounts of planners, endpoint pickers and profiling jobs.",
        where=Where.CLUSTER,
        feature=Feature.CLUSTER_WIDE,
        names=(Name.PLANNER_ROLE, Name.EPP_ROLE, Name.PROFILING_ROLE, Name.PROFILING_NODES),
    ),
    Rule(
        _RBAC,
        ("clusterrolebindings",),
        ("get", "patch"),
        "Lists there the accounts of profiling Jobs that are to find GPUs, until their requests end.",
        where=Where.CLUSTER,
        feature=Feature.CLUSTER_WIDE,
        names=(Name.PROFILING_NODES,),
    ),
    Rule("", ("serviceaccounts", "services", "configmaps"), _MANAGE, "Makes those of each graph."),
    Rule(
        "",
        ("persistentvolumeclaims",),
        (*_READ, *_APPLY),
        "Creates claims that graphs ask for; those without `retain` are deleted with their graph.",
    ),
    Rule("apps", ("deployments",), _MANAGE, "Runs components on one node."),
    Rule("networking.k8s.io", ("ingresses",), _MANAGE, "Makes frontends reachable."),
    Rule(
        "policy",
        ("poddisruptionbudgets",),
        _MANAGE,
        "Limits what evictions may take from a service.",
    ),
    Rule("", ("pods",), _READ, "Says why a graph is not ready, and where its models are."),
    Rule("", ("events",), _APPLY, "Tells users what it did and what is wrong."),
    Rule(
        "",
        ("secrets",),
        ("list", "watch"),
        "Finds pull secrets by the registries in them. Kubernetes has no right to list only Secrets of "
        "one type, so this one is wider than its use.",
    ),
    Rule(
        "",
        ("secrets",),
        _MANAGE,
        "Makes, or copies, the SSH keys of namespaces where TensorRT-LLM runs on several nodes.",
        feature=Feature.SSH_KEYS,
        names=(Name.SSH_SECRET,),
    ),
    Rule(
        "",
        ("secrets",),
        _READ,
        "Reads the SSH keys that an administrator lets all namespaces share.",
        where=Where.OWN,
        feature=Feature.SSH_KEYS,
        names=(Name.SSH_SECRET,),
    ),
    Rule(
        "apiextensions.k8s.io",
        ("customresourcedefinitions",),
        _READ,
        "Notices which optional kinds come and go. Without it the operator looks once, at its start.",
        where=Where.CLUSTER,
    ),
    Rule(_LEASES, ("leases",), ("create",), "Makes the Lease of its leader.", where=Where.ELECTION),
    Rule(
        _LEASES,
        ("leases",),
        ("get", "patch"),
        "Takes, renews and releases that Lease.",
        where=Where.ELECTION,
        names=(Name.ELECTION_LEASE,),
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("list", "watch"),
        "Keeps out of namespaces that have an operator of their own.",
        feature=Feature.CLUSTER_WIDE,
        names=(MARKER_LEASE,),
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("create",),
        "Makes the Lease that marks its namespace as its own.",
        feature=Feature.RESTRICTED,
    ),
    Rule(
        _LEASES,
        ("leases",),
        ("get", "patch", "delete"),
        "Renews that Lease, and takes it away when it stops.",
        feature=Feature.RESTRICTED,
        names=(MARKER_LEASE,),
    ),
    *_certificate("webhooks", Name.WEBHOOK_SECRET, Feature.OWN_CERTIFICATE),
    Rule(
        "admissionregistration.k8s.io",
        ("validatingwebhookconfigurations",),
        _READ,
        "Is ready only when the API server knows the certificate of its webhooks.",
        where=Where.CLUSTER,
        feature=Feature.WEBHOOKS,
        names=(Name.WEBHOOK_CONFIGURATION,),
    ),
    Rule(
        "admissionregistration.k8s.io",
        ("validatingwebhookconfigurations",),
        ("patch",),
        "Tells the API server that certificate. Who may do this could have all requests of the cluster shown "
        "to himself, so an operator of one namespace has not this right.",
        where=Where.CLUSTER,
        feature=Feature.OWN_BUNDLE,
        names=(Name.WEBHOOK_CONFIGURATION,),
    ),
    *_certificate("metrics", Name.METRICS_SECRET, Feature.METRICS_CERTIFICATE),
    Rule(
        "authorization.k8s.io",
        ("subjectaccessreviews",),
        ("create",),
        "Asks whether a namespace accepts graphs from requests in another one, and whether their authors may "
        "create them there.",
        where=Where.CLUSTER,
        feature=Feature.CLUSTER_WIDE,
    ),
    *_with(
        Feature.METRICS_REVIEW,
        Rule(
            "authentication.k8s.io",
            ("tokenreviews",),
            ("create",),
            "Knows who asks for its metrics.",
            where=Where.CLUSTER,
        ),
        Rule(
            "authorization.k8s.io",
            ("subjectaccessreviews",),
            ("create",),
            "Knows whether he may read them.",
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
            "Says how far a gang is.",
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
        "Checks the queue that a gang names.",
        where=Where.CLUSTER,
        feature=Feature.KAI,
    ),
    *_with(
        Feature.LEADER_WORKER_SET,
        Rule(
            "leaderworkerset.x-k8s.io",
            ("leaderworkersets",),
            _MANAGE,
            "Runs components on several nodes.",
        ),
        Rule(
            "scheduling.volcano.sh",
            ("podgroups",),
            _MANAGE,
            "Has their pods scheduled together.",
        ),
    ),
    Rule(
        "apps",
        ("statefulsets",),
        ("list", "watch"),
        "Learns which templates the leaders of LeaderWorkerSets run.",
    ),
    Rule(
        "networking.istio.io",
        ("virtualservices",),
        _MANAGE,
        "Makes frontends reachable through a mesh.",
        feature=Feature.ISTIO,
    ),
    Rule(
        "inference.networking.k8s.io",
        ("inferencepools",),
        _MANAGE,
        "Makes the pool in front of which an endpoint picker stands.",
        feature=Feature.INFERENCE_POOL,
    ),
)
"""What the operator may do. Each rule says why."""
