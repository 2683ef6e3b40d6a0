"""Every label and annotation key that we write or read, with what it means.

One table, so that the reference page and the code cannot drift apart. The hard part is which keys a
user may set on pods: our selectors are made of some of them, so those are ours alone (`SELECTING`).
"""

from dataclasses import dataclass
from enum import Enum


class Use(Enum):
    """Where a key stands, and who writes it."""

    LABEL = "label"
    READ = "annotation that we read"
    WRITTEN = "annotation that we write"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the reference page."""

    key: str
    use: Use
    on: str
    text: str


ENTRIES: list[Entry] = []


def _key(key: str, use: Use, on: str, text: str) -> str:
    ENTRIES.append(Entry(key, use, on, text))
    return key


SELECTOR = _key(
    "nvidia.com/selector",
    Use.LABEL,
    "pods; selectors of Deployments",
    "The name of the workload that the pod belongs to.",
)
GRAPH = _key(
    "nvidia.com/dynamo-graph-deployment-name",
    Use.LABEL,
    "every object of a graph",
    "The name of the DynamoGraphDeployment; shortened when it has more than 63 characters.",
)
COMPONENT = _key(
    "nvidia.com/dynamo-component",
    Use.LABEL,
    "every object of a component; selectors of Services",
    "The service's key in the graph, in its own case; without a graph the service name, else the "
    "component's own.",
)
DYNAMO_NAMESPACE = _key(
    "nvidia.com/dynamo-namespace",
    Use.LABEL,
    "every object of a component; selectors of Services",
    "Where the graph's processes find each other: `dynamo`, or `{namespace}-{graph}`.",
)
COMPONENT_TYPE = _key(
    "nvidia.com/dynamo-component-type",
    Use.LABEL,
    "pods; selectors of Services",
    "`componentType`, if it is set.",
)
SUB_COMPONENT_TYPE = _key(
    "nvidia.com/dynamo-sub-component-type",
    Use.LABEL,
    "pods",
    "`subComponentType`, if it is set, such as `prefill`.",
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
    "`true` unless metrics are switched off; PodMonitors select by it.",
)
DISCOVERY_BACKEND_LABEL = _key(
    "nvidia.com/dynamo-discovery-backend",
    Use.LABEL,
    "Services",
    "`kubernetes` when the graph's processes find each other through the API server.",
)
DISCOVERY_ENABLED = _key(
    "nvidia.com/dynamo-discovery-enabled",
    Use.LABEL,
    "Services of all components but frontends",
    "`true`: the endpoints behind this Service are workers to be discovered.",
)
TARGET_TYPE = _key(
    "nvidia.com/dynamo-deployment-target-type",
    Use.LABEL,
    "pods and Service of the debug Deployment",
    "`debug` on what a developer may stop and step through.",
)
ROLE = _key(
    "role",
    Use.LABEL,
    "pods of LeaderWorkerSets; selectors of the Services of components on several nodes",
    "`leader` or `worker`; requests go to leaders.",
)
INSTANCE = _key(
    "instance-id",
    Use.LABEL,
    "LeaderWorkerSets, their pods and PodGroups",
    "The number of the replica, from 0.",
)
MANAGED_BY = _key(
    "nvidia.com/managed-by",
    Use.LABEL,
    "the model's Service",
    "`dynamo-operator`.",
)
COMPONENT_POD = _key(
    "nvidia.com/dynamo-component-pod",
    Use.LABEL,
    "ServiceAccounts, set by you",
    "`true` makes it the account of pods that have no other, where discovery is not `kubernetes`.",
)
WORKER_HASH = _key(
    "nvidia.com/dynamo-worker-hash",
    Use.LABEL,
    "components of workers whose rollouts the operator manages",
    "Generation of the workers that the component belongs to: eight hexadecimal digits.",
)
KAI_QUEUE_LABEL = _key(
    "kai.scheduler/queue",
    Use.LABEL,
    "pods on Grove, where the KAI scheduler is installed",
    "The queue of the KAI scheduler that the pods wait in.",
)
APP_MANAGED_BY = _key(
    "app.kubernetes.io/managed-by",
    Use.LABEL,
    "ServiceAccounts, Roles, RoleBindings",
    "`dynamo-operator`.",
)
APP_COMPONENT = _key(
    "app.kubernetes.io/component",
    Use.LABEL,
    "ServiceAccounts, Roles, RoleBindings",
    "`rbac`.",
)
APP_NAME = _key(
    "app.kubernetes.io/name",
    Use.LABEL,
    "ServiceAccounts, Roles, RoleBindings",
    "The name of the ServiceAccount.",
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
    "every object of ours",
    "`true`: nothing is written for the object until the annotation goes; it can be deleted.",
)
SUSPEND = _key(
    "nvidia.com/suspend",
    Use.READ,
    "DynamoGraphDeployment",
    "`true`: all services go to zero replicas, workers first; the spec keeps its numbers.",
)
WORKER_ROLLOUT = _key(
    "nvidia.com/worker-rollout",
    Use.READ,
    "DynamoGraphDeployment",
    "`managed`: a change of a worker makes a new generation of all workers, which find only each "
    "other; needs Dynamo 1.0 or newer. `native`: each Deployment replaces its own pods.",
)
ENABLE_METRICS = _key(
    "nvidia.com/enable-metrics",
    Use.READ,
    "DynamoGraphDeployment; a service's `annotations`",
    "`false` leaves the label `nvidia.com/metrics-enabled` off the pods.",
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
    "The queue of the KAI scheduler for the pods of a graph on Grove; `dynamo` unless it is set.",
)
DISABLE_PULL_SECRETS = _key(
    "nvidia.com/disable-image-pull-secret-discovery",
    Use.READ,
    "a service's `annotations`",
    "`true`: no pull secrets are looked up for the image's registry.",
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
    "Pods beyond the replicas during an update: a number or a percentage; default `25%`.",
)
MAX_UNAVAILABLE = _key(
    "nvidia.com/deployment-rolling-update-max-unavailable",
    Use.READ,
    "a service's `annotations` or `extraPodMetadata.annotations`",
    "Pods that may be missing during an update: a number or a percentage; default `25%`.",
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
    "`true` adds a second Deployment of one pod to debug, and Services `-p` and `-d`.",
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
    "The id of the last restart that was asked for.",
)
GROUP_NAME = _key(
    "scheduling.k8s.io/group-name",
    Use.WRITTEN,
    "pods of LeaderWorkerSets",
    "The PodGroup with which Volcano places the pods of one replica together.",
)
GROUP_HASH = _key(
    "nvidia.com/group-hash",
    Use.WRITTEN,
    "leaders of LeaderWorkerSets",
    "Stands for both templates of the group, so that it can be seen which ones the pods are made of.",
)
BASE_MODEL = _key(
    "nvidia.com/dynamo-base-model",
    Use.WRITTEN,
    "objects of a component with `modelRef`; the model's Service",
    "The model's name as it was written.",
)
CURRENT_WORKER_HASH = _key(
    "nvidia.com/current-worker-hash",
    Use.WRITTEN,
    "DynamoGraphDeployment",
    "Generation of the workers that serves; changes when a managed rolling update is complete.",
)
WORKER_CONTENT = _key(
    "nvidia.com/worker-content",
    Use.WRITTEN,
    "components of workers whose rollouts the operator manages",
    "Stands for what the user said of the workers that the component was made for: the version of the "
    "hash, a colon, eight hexadecimal digits.",
)
WORKLOAD_PROVIDER = _key(
    "nvidia.com/workload-provider",
    Use.WRITTEN,
    "DynamoGraphDeployment",
    "`component` or `grove`: who runs the graph's workloads. Chosen when the graph is new, written where "
    "Grove is installed, and kept.",
)
REQUEST = _key(
    "dgdr.nvidia.com/name",
    Use.LABEL,
    "what comes of a DynamoGraphDeploymentRequest: pods that profile, their output, the graph",
    "The name of the request; shortened when it has more than 63 characters.",
)
REQUEST_NAMESPACE = _key(
    "dgdr.nvidia.com/namespace",
    Use.LABEL,
    "the graph of a DynamoGraphDeploymentRequest, and ConfigMaps that belong to it",
    "The namespace of the request.",
)
REQUEST_UID = _key(
    "dgdr.nvidia.com/uid",
    Use.WRITTEN,
    "the graph of a DynamoGraphDeploymentRequest, and ConfigMaps that belong to it",
    "The uid of the request, by which it knows its own.",
)
REQUEST_GENERATION = _key(
    "dgdr.nvidia.com/generation",
    Use.WRITTEN,
    "Jobs that profile",
    "The generation of the request that the Job was made for.",
)
PROFILING_JOB = _key(
    "dgdr",
    Use.LABEL,
    "Jobs that profile",
    "The name of the request; shortened when it has more than 63 characters.",
)
PROFILING_APP = _key(
    "app",
    Use.LABEL,
    "Jobs that profile",
    "`dynamo-profiler`; `aic-profiler` if AI Configurator takes the place of measurements.",
)
LAST_APPLIED_HASH = _key(
    "nvidia.com/last-applied-hash",
    Use.WRITTEN,
    "every object that we apply",
    "What was applied last, so that nothing is written when nothing changed.",
)
OWNER_GENERATION = _key(
    "nvidia.com/owner-generation",
    Use.WRITTEN,
    "every object that we apply",
    "For which generation of its owner it was written. An operator that knows an older one asks first.",
)
LAST_APPLIED_GENERATION = _key(
    "nvidia.com/last-applied-generation",
    Use.READ,
    "objects of an earlier operator",
    "Left behind by an earlier operator; has no effect, and is never copied to a child.",
)
ADOPTED_SPEC = _key(
    "nvidia.com/adopted-spec",
    Use.WRITTEN,
    "DynamoComponentDeployment",
    "The component was taken over from an earlier operator with this spec (a digest), so its pods keep "
    "the templates that they run with. Removed with the next change of the spec.",
)
ADOPTED_TEMPLATES = _key(
    "nvidia.com/adopted-templates",
    Use.WRITTEN,
    "Deployments, LeaderWorkerSets, PodCliqueSets",
    "Pod templates of an earlier operator that are kept, each as `name=rendered:kept`: digests of what "
    "this operator would write, and of what runs. The template is replaced when either changes.",
)

SELECTING = frozenset(
    (
        SELECTOR,
        COMPONENT,
        COMPONENT_TYPE,
        SUB_COMPONENT_TYPE,
        DYNAMO_NAMESPACE,
        GRAPH,
        BASE_MODEL_HASH,
        TARGET_TYPE,
        WORKER_HASH,
    )
)
"""Labels that tell our pods apart. A user's value for one of them is not taken over."""

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
BOOKKEEPING = frozenset((*_APPLIED, ADOPTED_SPEC, ADOPTED_TEMPLATES))
"""Annotations that belong to one object and are never handed on."""

MANAGER = "dynamo-operator"
INSTALLATION = _key(
    "dynamo.nvidia.com/installation",
    Use.WRITTEN,
    "the Lease of the leader",
    "Account of the operators that share the Lease, by which two installations notice each other.",
)
