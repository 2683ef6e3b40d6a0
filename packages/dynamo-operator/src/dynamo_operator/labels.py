"""Every label and annotation key that we write or read, with what it means.

`docs/labels-and-annotations.md` is written from this table, so that page and code cannot drift apart.
"""

from enum import Enum
from typing import NamedTuple


class Use(Enum):
    """Whether a key is a label or an annotation, and who writes it."""

    LABEL = "label"
    READ = "annotation that we read"
    WRITTEN = "annotation that we write"


class LabelEntry(NamedTuple):
    """One row of the reference page."""

    key: str
    use: Use
    on: str
    text: str


ENTRIES: list[LabelEntry] = []


def _key(key: str, use: Use, on: str, text: str) -> str:
    ENTRIES.append(LabelEntry(key, use, on, text))
    return key


SELECTOR = _key(
    "nvidia.com/selector",
    Use.LABEL,
    "pods; selectors of Deployments",
    "Name of the pod's workload.",
)
GRAPH = _key(
    "nvidia.com/dynamo-graph-deployment-name",
    Use.LABEL,
    "every object of a graph",
    "Name of the DynamoGraphDeployment; shortened if it has more than 63 characters.",
)
COMPONENT = _key(
    "nvidia.com/dynamo-component",
    Use.LABEL,
    "every object of a component; selectors of Services",
    "The service's key in the graph, case preserved; without a graph the service name, else its own name.",
)
DYNAMO_NAMESPACE = _key(
    "nvidia.com/dynamo-namespace",
    Use.LABEL,
    "every object of a component; selectors of Services",
    "Namespace in which the graph's processes discover each other: `dynamo`, or `{namespace}-{graph}`.",
)
COMPONENT_TYPE = _key(
    "nvidia.com/dynamo-component-type",
    Use.LABEL,
    "pods; selectors of Services",
    "`componentType`, if set.",
)
SUB_COMPONENT_TYPE = _key(
    "nvidia.com/dynamo-sub-component-type",
    Use.LABEL,
    "pods",
    "`subComponentType`, if set, for example `prefill`.",
)
BASE_MODEL_HASH = _key(
    "nvidia.com/dynamo-base-model-hash",
    Use.LABEL,
    "objects of a component with `modelRef`; selector of the model's Service",
    "Eight hexadecimal digits of the SHA-256 of the model's name.",
)
METRICS_ENABLED = _key(
    "nvidia.com/metrics-enabled",
    Use.LABEL,
    "pods",
    "`true` unless metrics are disabled; PodMonitors select by it.",
)
DISCOVERY_BACKEND_LABEL = _key(
    "nvidia.com/dynamo-discovery-backend",
    Use.LABEL,
    "Services",
    "`kubernetes` if the graph's processes discover each other through the API server.",
)
DISCOVERY_ENABLED = _key(
    "nvidia.com/dynamo-discovery-enabled",
    Use.LABEL,
    "Services of all components but frontends",
    "`true`: the endpoints of this Service are discoverable workers.",
)
TARGET_TYPE = _key(
    "nvidia.com/dynamo-deployment-target-type",
    Use.LABEL,
    "pods and Service of the debug Deployment",
    "`debug` on the pods that a developer may stop and step through.",
)
ROLE = _key(
    "role",
    Use.LABEL,
    "pods of LeaderWorkerSets; selectors of the Services of multinode components",
    "`leader` or `worker`; leaders receive the requests.",
)
INSTANCE = _key(
    "instance-id",
    Use.LABEL,
    "LeaderWorkerSets, their pods and PodGroups",
    "Index of the replica, from 0.",
)
MANAGED_BY = _key("nvidia.com/managed-by", Use.LABEL, "the model's Service", "`dynamo-operator`.")
COMPONENT_POD = _key(
    "nvidia.com/dynamo-component-pod",
    Use.LABEL,
    "ServiceAccounts, set by you",
    "`true` makes it the ServiceAccount of pods that set none, where discovery is not `kubernetes`.",
)
WORKER_HASH = _key(
    "nvidia.com/dynamo-worker-hash",
    Use.LABEL,
    "components of workers with managed rollouts",
    "Revision of the workers: eight hexadecimal digits.",
)
KAI_QUEUE_LABEL = _key(
    "kai.scheduler/queue",
    Use.LABEL,
    "pods on Grove, where the KAI scheduler is installed",
    "KAI scheduler queue of the pods.",
)
APP_MANAGED_BY = _key(
    "app.kubernetes.io/managed-by",
    Use.LABEL,
    "ServiceAccounts, Roles, RoleBindings",
    "`dynamo-operator`.",
)
APP_COMPONENT = _key(
    "app.kubernetes.io/component", Use.LABEL, "ServiceAccounts, Roles, RoleBindings", "`rbac`."
)
APP_NAME = _key(
    "app.kubernetes.io/name",
    Use.LABEL,
    "ServiceAccounts, Roles, RoleBindings",
    "Name of the ServiceAccount.",
)

ENABLE_GROVE = _key(
    "nvidia.com/enable-grove",
    Use.READ,
    "DynamoGraphDeployment",
    "`false` keeps the graph off Grove.",
)
PAUSED = _key(
    "nvidia.com/paused",
    Use.READ,
    "every object of a Dynamo kind",
    "`true`: the operator writes nothing for the object until you remove it; deletion still works.",
)
SUSPEND = _key(
    "nvidia.com/suspend",
    Use.READ,
    "DynamoGraphDeployment",
    "`true`: all services scale to zero, workers first; the spec keeps its numbers.",
)
WORKER_ROLLOUT = _key(
    "nvidia.com/worker-rollout",
    Use.READ,
    "DynamoGraphDeployment",
    "`managed`: a change of a worker creates a new revision of all workers, which discover only "
    "each other; requires Dynamo 1.0 or newer. `native`: each Deployment replaces its own pods.",
)
ENABLE_METRICS = _key(
    "nvidia.com/enable-metrics",
    Use.READ,
    "DynamoGraphDeployment; a service's `annotations`",
    "`false` removes the label `nvidia.com/metrics-enabled` from the pods.",
)
DISCOVERY_BACKEND = _key(
    "nvidia.com/dynamo-discovery-backend",
    Use.READ,
    "DynamoGraphDeployment; a service's `annotations`",
    "`kubernetes` or `etcd`; overrides the operator's setting.",
)
KAI_QUEUE = _key(
    "nvidia.com/kai-scheduler-queue",
    Use.READ,
    "DynamoGraphDeployment",
    "KAI scheduler queue for the pods of a graph on Grove (default `dynamo`).",
)
DISABLE_PULL_SECRETS = _key(
    "nvidia.com/disable-image-pull-secret-discovery",
    Use.READ,
    "a service's `annotations`",
    "`true`: the operator looks up no pull secrets for the image's registry.",
)
STRATEGY = _key(
    "nvidia.com/deployment-strategy",
    Use.READ,
    "a service's `annotations`",
    "`RollingUpdate` (default) or `Recreate`.",
)
MAX_SURGE = _key(
    "nvidia.com/deployment-rolling-update-max-surge",
    Use.READ,
    "a service's `annotations` or `extraPodMetadata.annotations`",
    "Pods above the desired replicas during an update: a number or a percentage; default `25%`.",
)
MAX_UNAVAILABLE = _key(
    "nvidia.com/deployment-rolling-update-max-unavailable",
    Use.READ,
    "a service's `annotations` or `extraPodMetadata.annotations`",
    "Pods that may be unavailable during an update: a number or a percentage; default `25%`.",
)
DEBUG_MODE = _key(
    "nvidia.com/enable-debug-mode",
    Use.READ,
    "a service's `annotations`",
    "`true` adds a container `debugger` that shares the process namespace.",
)
STEALING_DEBUG_MODE = _key(
    "nvidia.com/enable-stealing-traffic-debug-mode",
    Use.READ,
    "a service's `annotations`",
    "`true` adds a second single-pod Deployment for debugging, and Services `-p` and `-d`.",
)
DEBUG_RECEIVES_TRAFFIC = _key(
    "nvidia.com/enable-debug-pod-receive-production-traffic",
    Use.READ,
    "a service's `annotations`",
    "Accepted for compatibility; has no effect.",
)
RESTART_AT = _key(
    "nvidia.com/restartAt",
    Use.WRITTEN,
    "components and their pods",
    "Id of the last requested restart.",
)
GROUP_NAME = _key(
    "scheduling.k8s.io/group-name",
    Use.WRITTEN,
    "pods of LeaderWorkerSets",
    "PodGroup with which Volcano schedules the pods of one replica together.",
)
GROUP_HASH = _key(
    "nvidia.com/group-hash",
    Use.WRITTEN,
    "leaders of LeaderWorkerSets",
    "Hash of both templates of the group, which shows the templates of the pods.",
)
BASE_MODEL = _key(
    "nvidia.com/dynamo-base-model",
    Use.WRITTEN,
    "objects of a component with `modelRef`; the model's Service",
    "The model's name, unchanged.",
)
CURRENT_WORKER_HASH = _key(
    "nvidia.com/current-worker-hash",
    Use.WRITTEN,
    "DynamoGraphDeployment",
    "Revision of the serving workers; changes when a managed rollout is complete.",
)
WORKER_CONTENT = _key(
    "nvidia.com/worker-content",
    Use.WRITTEN,
    "components of workers with managed rollouts",
    "Hash of the workers' spec for which the component was created, as `version:digits`.",
)
GRAPH_REVISION = _key(
    "nvidia.com/graph-revision", Use.LABEL, "ControllerRevisions of a graph", "Its number."
)
REVISION_HISTORY_LIMIT = _key(
    "nvidia.com/revision-history-limit",
    Use.READ,
    "DynamoGraphDeployment",
    "Former specs kept for `dynamoctl rollout undo`: 0 to 100, default 10. `0` keeps no revision.",
)
WORKLOAD_PROVIDER = _key(
    "nvidia.com/workload-provider",
    Use.WRITTEN,
    "DynamoGraphDeployment",
    "`component` or `grove`, which runs the workloads; chosen once, written where Grove is installed.",
)
REQUEST = _key(
    "dgdr.nvidia.com/name",
    Use.LABEL,
    "objects of a DynamoGraphDeploymentRequest: profiling pods, their output, the graph",
    "Name of the request; shortened if it has more than 63 characters.",
)
REQUEST_NAMESPACE = _key(
    "dgdr.nvidia.com/namespace",
    Use.LABEL,
    "the graph of a DynamoGraphDeploymentRequest, and its ConfigMaps",
    "Namespace of the request.",
)
REQUEST_UID = _key(
    "dgdr.nvidia.com/uid",
    Use.WRITTEN,
    "the graph of a DynamoGraphDeploymentRequest, and its ConfigMaps",
    "Uid of the request, which identifies its objects.",
)
REQUEST_RECORD = _key(
    "dgdr.nvidia.com/record",
    Use.WRITTEN,
    "DynamoGraphDeploymentRequest",
    "What the operator has done for the request: generation and digest of the accepted spec, uid of the Job, "
    "digest of the results, whether the graph was created. The operator acts on it, and not on the status.",
)
REQUEST_GENERATION = _key(
    "dgdr.nvidia.com/generation",
    Use.WRITTEN,
    "profiling Jobs",
    "Generation of the request for which the Job was created.",
)
PROFILING_JOB = _key(
    "dgdr",
    Use.LABEL,
    "profiling Jobs",
    "Name of the request; shortened if it has more than 63 characters.",
)
PROFILING_APP = _key(
    "app",
    Use.LABEL,
    "profiling Jobs",
    "`dynamo-profiler`; `aic-profiler` if AI Configurator replaces measurements.",
)
LAST_APPLIED_HASH = _key(
    *("nvidia.com/last-applied-hash", Use.WRITTEN, "every object that the operator applies"),
    "Hash of the last applied content, which avoids writes without a change.",
)
OWNER_GENERATION = _key(
    *("nvidia.com/owner-generation", Use.WRITTEN, "every object that the operator applies"),
    "Generation of the owner for which it was written; an operator with an older one reads the owner first.",
)
LAST_APPLIED_GENERATION = _key(
    "nvidia.com/last-applied-generation",
    Use.READ,
    "objects of an earlier operator",
    "Left by an earlier operator; has no effect, and is never copied to a child.",
)
ADOPTED_SPEC = _key(
    "nvidia.com/adopted-spec",
    Use.WRITTEN,
    "DynamoComponentDeployment",
    "Digest of the spec with which the operator took over the component from an earlier "
    "operator, so that its pods keep their templates. Removed with the next change of the spec.",
)
NAMESPACE_DEFAULTS = _key(
    *("nvidia.com/namespace-defaults", Use.WRITTEN, "Deployments, LeaderWorkerSets, PodCliqueSets"),
    "Pull secrets and ServiceAccount that the operator found in the namespace for the pods, by component. "
    "They stay until the pod template changes for another reason.",
)
ADOPTED_TEMPLATES = _key(
    *("nvidia.com/adopted-templates", Use.WRITTEN, "Deployments, LeaderWorkerSets, PodCliqueSets"),
    "Pod templates of an earlier operator that are kept, each as `name=rendered:kept`: digests of what "
    "this operator would render and of what runs. The template is replaced when either changes.",
)

SELECTING = frozenset(
    (
        *(SELECTOR, COMPONENT, COMPONENT_TYPE, SUB_COMPONENT_TYPE, DYNAMO_NAMESPACE),
        *(GRAPH, BASE_MODEL_HASH, TARGET_TYPE, WORKER_HASH),
    )
)
"""Labels that our selectors use. A user's value for one of them is ignored."""

SWITCHES = frozenset(
    (
        ENABLE_GROVE,
        ENABLE_METRICS,
        DISCOVERY_BACKEND,
        DISABLE_PULL_SECRETS,
        STRATEGY,
        MAX_SURGE,
        MAX_UNAVAILABLE,
        DEBUG_MODE,
        STEALING_DEBUG_MODE,
        DEBUG_RECEIVES_TRAFFIC,
        RESTART_AT,
    )
)
"""Annotations of a service that are meant for the operator. They stay off pods, so that no pod restarts."""

_APPLIED = (LAST_APPLIED_HASH, OWNER_GENERATION, LAST_APPLIED_GENERATION)
BOOKKEEPING = frozenset((*_APPLIED, ADOPTED_SPEC, ADOPTED_TEMPLATES, NAMESPACE_DEFAULTS))
"""Annotations that belong to one object and are never handed on."""

MANAGER = "dynamo-operator"
SHARED = (APP_MANAGED_BY, MANAGER)
"""The label, with its value, of objects that several graphs or requests own."""
SHARED_MODEL = (MANAGED_BY, MANAGER)
"""The label, with its value, of a model's Service, which several graphs or components own."""
INSTALLATION = _key(
    "dynamo.nvidia.com/installation",
    Use.WRITTEN,
    "the Lease of the leader",
    "ServiceAccount of the operators that share the Lease, by which two installations detect each other.",
)
