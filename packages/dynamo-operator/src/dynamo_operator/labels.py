"""Every label and annotation key that we write or read. What each means is in `tools/labels.toml`."""

SELECTOR = "nvidia.com/selector"
GRAPH = "nvidia.com/dynamo-graph-deployment-name"
COMPONENT = "nvidia.com/dynamo-component"
DYNAMO_NAMESPACE = "nvidia.com/dynamo-namespace"
COMPONENT_TYPE = "nvidia.com/dynamo-component-type"
SUB_COMPONENT_TYPE = "nvidia.com/dynamo-sub-component-type"
BASE_MODEL_HASH = "nvidia.com/dynamo-base-model-hash"
METRICS_ENABLED = "nvidia.com/metrics-enabled"
DISCOVERY_BACKEND_LABEL = "nvidia.com/dynamo-discovery-backend"
DISCOVERY_ENABLED = "nvidia.com/dynamo-discovery-enabled"
TARGET_TYPE = "nvidia.com/dynamo-deployment-target-type"
ROLE = "role"
INSTANCE = "instance-id"
MANAGED_BY = "nvidia.com/managed-by"
COMPONENT_POD = "nvidia.com/dynamo-component-pod"
WORKER_HASH = "nvidia.com/dynamo-worker-hash"
KAI_QUEUE_LABEL = "kai.scheduler/queue"
APP_MANAGED_BY = "app.kubernetes.io/managed-by"
APP_COMPONENT = "app.kubernetes.io/component"
APP_NAME = "app.kubernetes.io/name"

ENABLE_GROVE = "nvidia.com/enable-grove"
PAUSED = "nvidia.com/paused"
SUSPEND = "nvidia.com/suspend"
WORKER_ROLLOUT = "nvidia.com/worker-rollout"
ENABLE_METRICS = "nvidia.com/enable-metrics"
DISCOVERY_BACKEND = "nvidia.com/dynamo-discovery-backend"
KAI_QUEUE = "nvidia.com/kai-scheduler-queue"
GROVE_UPDATE_STRATEGY = "nvidia.com/grove-update-strategy"
DISABLE_PULL_SECRETS = "nvidia.com/disable-image-pull-secret-discovery"
STRATEGY = "nvidia.com/deployment-strategy"
MAX_SURGE = "nvidia.com/deployment-rolling-update-max-surge"
MAX_UNAVAILABLE = "nvidia.com/deployment-rolling-update-max-unavailable"
DEBUG_MODE = "nvidia.com/enable-debug-mode"
STEALING_DEBUG_MODE = "nvidia.com/enable-stealing-traffic-debug-mode"
DEBUG_RECEIVES_TRAFFIC = "nvidia.com/enable-debug-pod-receive-production-traffic"
RESTART_AT = "nvidia.com/restartAt"
GROUP_NAME = "scheduling.k8s.io/group-name"
GROUP_HASH = "nvidia.com/group-hash"
BASE_MODEL = "nvidia.com/dynamo-base-model"
CURRENT_WORKER_HASH = "nvidia.com/current-worker-hash"
CURRENT_WORKER_HASH_V2 = "nvidia.com/current-worker-hash-v2"
WORKER_CONTENT = "nvidia.com/worker-content"
GRAPH_REVISION = "nvidia.com/graph-revision"
REVISION_HISTORY_LIMIT = "nvidia.com/revision-history-limit"
WORKLOAD_PROVIDER = "nvidia.com/workload-provider"
REQUEST = "dgdr.nvidia.com/name"
REQUEST_NAMESPACE = "dgdr.nvidia.com/namespace"
REQUEST_UID = "dgdr.nvidia.com/uid"
REQUEST_RECORD = "dgdr.nvidia.com/record"
REQUEST_GENERATION = "dgdr.nvidia.com/generation"
PROFILING_JOB = "dgdr"
PROFILING_APP = "app"
LAST_APPLIED_HASH = "nvidia.com/last-applied-hash"
OWNER_GENERATION = "nvidia.com/owner-generation"
LAST_APPLIED_GENERATION = "nvidia.com/last-applied-generation"
ADOPTED_SPEC = "nvidia.com/adopted-spec"
NAMESPACE_DEFAULTS = "nvidia.com/namespace-defaults"
ADOPTED_TEMPLATES = "nvidia.com/adopted-templates"
INSTALLATION = "dynamo.nvidia.com/installation"

SELECTING = frozenset(
    (
        *(SELECTOR, COMPONENT, COMPONENT_TYPE, SUB_COMPONENT_TYPE, DYNAMO_NAMESPACE),
        *(GRAPH, BASE_MODEL_HASH, TARGET_TYPE, WORKER_HASH),
    )
)
"""Labels that our selectors use. A user's value for one of them is ignored."""

SWITCHES = frozenset(
    (
        *(ENABLE_GROVE, ENABLE_METRICS, DISCOVERY_BACKEND, DISABLE_PULL_SECRETS, RESTART_AT),
        *(STRATEGY, MAX_SURGE, MAX_UNAVAILABLE),
        *(DEBUG_MODE, STEALING_DEBUG_MODE, DEBUG_RECEIVES_TRAFFIC),
    )
)
"""Annotations of a service that are meant for the operator. They stay off pods, so that no pod restarts."""

_APPLIED = (LAST_APPLIED_HASH, OWNER_GENERATION, LAST_APPLIED_GENERATION)
BOOKKEEPING = frozenset((*_APPLIED, ADOPTED_SPEC, ADOPTED_TEMPLATES, NAMESPACE_DEFAULTS))
"""Annotations that belong to one object and are never handed on."""

LABELS = SELECTING.union(
    (METRICS_ENABLED, DISCOVERY_BACKEND_LABEL, DISCOVERY_ENABLED, ROLE, INSTANCE, COMPONENT_POD),
    (MANAGED_BY, APP_MANAGED_BY, APP_COMPONENT, APP_NAME, KAI_QUEUE_LABEL),
    (GRAPH_REVISION, REQUEST, REQUEST_NAMESPACE, PROFILING_JOB, PROFILING_APP),
)
ANNOTATIONS = SWITCHES.union(
    BOOKKEEPING,
    (
        PAUSED,
        SUSPEND,
        WORKER_ROLLOUT,
        CURRENT_WORKER_HASH,
        CURRENT_WORKER_HASH_V2,
        WORKER_CONTENT,
        REVISION_HISTORY_LIMIT,
    ),
    (WORKLOAD_PROVIDER, KAI_QUEUE, GROVE_UPDATE_STRATEGY, GROUP_NAME, GROUP_HASH, BASE_MODEL, INSTALLATION),
    (REQUEST_UID, REQUEST_RECORD, REQUEST_GENERATION),
)

FINALIZER = "nvidia.com/finalizer"
"""The name that the Go operator uses, too."""

MANAGER = "dynamo-operator"
SHARED = (APP_MANAGED_BY, MANAGER)
"""The label, with its value, of objects that several graphs or requests own."""
SHARED_MODEL = (MANAGED_BY, MANAGER)
"""The label, with its value, of a model's Service, which several graphs or components own."""
