"""The roles: the defaults of frontends, workers, planners, endpoint pickers and other components.

There are two profiles of default probes: `http` is that of the Go operator; `documented` follows the
published API reference to the letter, whose frontend check needs curl and jq in the image.
"""

from typing import Literal

from dynamo_graphs.api.names import EPP_SERVICE_ACCOUNT, PLANNER_SERVICE_ACCOUNT, inference_pool
from dynamo_graphs.render.interfaces import ComponentPlan, Role
from dynamo_graphs.render.launch import SHELL
from dynamo_graphs.render.merge import variable
from dynamo_graphs.types.optional_apis import InferencePool
from kube_runtime.kind import Object

HTTP_PORT = 8000
SYSTEM_PORT = 9090
PLANNER_METRICS_PORT = 9085
EPP_GRPC_PORT = 9002
EPP_CONFIG_FILE = "epp-config-dynamo.yaml"

TERMINATION_GRACE_SECONDS = 60
"""Default grace period of pods."""

_EPP_HEALTH_PORT = 9003
_EPP_METRICS_PORT = 9090
_EPP_CONFIG_VOLUME = "epp-config"
_EPP_CONFIG_FOLDER = "/etc/epp"
_EPP_CACHE_VOLUME = "hf-cache"
_EPP_CACHE_FOLDER = "/home/nonroot/.cache"
_EPP_TERMINATION_GRACE_SECONDS = 130


def _http(path: str, port: str, **numbers: int) -> Object:
    return {"httpGet": {"path": path, "port": port}, **numbers}


_HEALTHY = 'curl -s http://localhost:${DYNAMO_PORT}/health | jq -e ".status == \\"healthy\\""'
_WORKER_STARTUP = _http("/live", "system", periodSeconds=10, timeoutSeconds=5, failureThreshold=720)
_SLOW = {
    "initialDelaySeconds": 60,
    "periodSeconds": 60,
    "timeoutSeconds": 30,
    "failureThreshold": 10,
}
_PROBES: dict[Literal["http", "documented"], dict[str, dict[str, Object]]] = {
    "http": {
        "frontend": {
            "livenessProbe": _http(
                "/live",
                "http",
                initialDelaySeconds=15,
                periodSeconds=10,
                timeoutSeconds=1,
                failureThreshold=3,
            ),
            "readinessProbe": _http(
                "/health",
                "http",
                initialDelaySeconds=10,
                periodSeconds=10,
                timeoutSeconds=3,
                failureThreshold=3,
            ),
        },
        "worker": {
            "livenessProbe": _http(
                "/live", "system", periodSeconds=5, timeoutSeconds=4, failureThreshold=1
            ),
            "readinessProbe": _http(
                "/health", "system", periodSeconds=10, timeoutSeconds=4, failureThreshold=3
            ),
            "startupProbe": _WORKER_STARTUP,
        },
    },
    "documented": {
        "frontend": {
            "livenessProbe": _http("/health", "http", **_SLOW),
            "readinessProbe": {"exec": {"command": ["/bin/sh", "-c", _HEALTHY]}, **_SLOW},
        },
        "worker": {
            "livenessProbe": _http(
                "/live", "system", periodSeconds=5, timeoutSeconds=30, failureThreshold=1
            ),
            "readinessProbe": _http(
                "/health", "system", periodSeconds=10, timeoutSeconds=30, failureThreshold=60
            ),
            "startupProbe": _WORKER_STARTUP,
        },
    },
}


def _plain_container(_plan: ComponentPlan) -> Object:
    """A container that passes its arguments to a shell."""
    return {"name": "main", "command": list(SHELL)}


def _frontend_container(plan: ComponentPlan) -> Object:
    """The OpenAI-compatible server on its documented port."""
    return {
        "name": "main",
        "command": ["python3"],
        "args": ["-m", "dynamo.frontend"],
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        "env": [
            variable("DYNAMO_PORT", str(HTTP_PORT)),
            variable("DYN_HTTP_PORT", str(HTTP_PORT)),
        ],
        **_PROBES[plan.settings.probe_profile]["frontend"],
    }


def _worker_container(plan: ComponentPlan) -> Object:
    """A shell that starts the engine. Its health is that of the engine's `generate` endpoint."""
    probes = _PROBES[plan.settings.probe_profile]["worker"]
    # Administrators choose the failure threshold, since a model may take an hour to load.
    failures = {"failureThreshold": plan.settings.worker_liveness_failures}
    return {
        "name": "main",
        "command": list(SHELL),
        "ports": [{"name": "system", "containerPort": SYSTEM_PORT, "protocol": "TCP"}],
        "env": [
            variable("DYN_HEALTH_CHECK_ENABLED", "false"),
            variable("DYN_SYSTEM_ENABLED", "true"),
            variable("DYN_SYSTEM_PORT", str(SYSTEM_PORT)),
            variable("DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS", '["generate"]'),
        ],
        **probes,
        "livenessProbe": probes["livenessProbe"] | failures,
        **_drain(plan),
    }


def _drain(plan: ComponentPlan) -> Object:
    """The `preStop` hook that keeps a terminating pod serving during its drain period, or {}.

    With Kubernetes discovery a terminating pod leaves the EndpointSlices at once, but frontends notice
    later, and runtime 0.9.0 exits on SIGTERM while requests are on their way to it (see
    docs/real-node.md). With etcd a worker leaves discovery only when its process ends, so waiting would
    not help.
    """
    own = plan.main_container.get("lifecycle") or {}
    if not plan.is_discovered_by_kubernetes or own.get("preStop"):
        return {}
    grace = plan.pod.get("terminationGracePeriodSeconds")
    # The API server rejects a sleep longer than the grace period; half of it is left for running requests.
    longest = (TERMINATION_GRACE_SECONDS if grace is None else grace) // 2
    seconds = min(plan.settings.worker_drain_period_seconds, longest)
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}} if seconds > 0 else {}


def _planner_container(_plan: ComponentPlan) -> Object:
    """A shell with the planner's metrics port, without probes."""
    ports = [{"name": "metrics", "containerPort": PLANNER_METRICS_PORT, "protocol": "TCP"}]
    env = [variable("PLANNER_PROMETHEUS_PORT", str(PLANNER_METRICS_PORT))]
    return {"name": "main", "command": list(SHELL), "ports": ports, "env": env}


def _planner_pod(_plan: ComponentPlan) -> Object:
    """The ServiceAccount with permission to scale the graph."""
    return {"serviceAccountName": PLANNER_SERVICE_ACCOUNT}


def _epp_container(plan: ComponentPlan) -> Object:
    """The image's entrypoint, with arguments for its pool and its configuration."""
    probe: Object = {
        "grpc": {"port": _EPP_HEALTH_PORT, "service": "inference-extension"},
        "initialDelaySeconds": 5,
        "periodSeconds": 10,
    }
    return {
        "name": "main",
        "args": _epp_arguments(plan),
        "ports": [
            {"name": "grpc", "containerPort": EPP_GRPC_PORT, "protocol": "TCP"},
            {"name": "grpc-health", "containerPort": _EPP_HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": _EPP_METRICS_PORT, "protocol": "TCP"},
        ],
        "env": [
            variable("DYN_DISCOVERY_TIMEOUT_SEC", "300"),
            variable("DYN_KV_BLOCK_SIZE", "16"),
            variable("RUST_LOG", "debug,dynamo_llm::kv_router=trace"),
            variable("USE_STREAMING", "true"),
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [
            {"name": _EPP_CONFIG_VOLUME, "mountPath": _EPP_CONFIG_FOLDER, "readOnly": True},
            {"name": _EPP_CACHE_VOLUME, "mountPath": _EPP_CACHE_FOLDER},
        ],
    }


def _epp_arguments(plan: ComponentPlan) -> list[str]:
    values = {
        "-pool-name": inference_pool(plan.graph),
        "-pool-namespace": plan.namespace,
        "-pool-group": InferencePool.KIND.group,
        "-v": "4",
        "--zap-encoder": "json",
        "-grpc-port": str(EPP_GRPC_PORT),
        "-grpc-health-port": str(_EPP_HEALTH_PORT),
        "-config-file": f"{_EPP_CONFIG_FOLDER}/{EPP_CONFIG_FILE}",
    }
    return [word for flag, value in values.items() for word in (flag, value)]


def _epp_pod(plan: ComponentPlan) -> Object:
    """ServiceAccount, a long grace period, and volumes for configuration and tokenizers."""
    source = plan.epp_config
    config = {
        "name": source.config_map,
        "items": [{"key": source.key, "path": EPP_CONFIG_FILE}],
    }
    return {
        "serviceAccountName": EPP_SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": _EPP_TERMINATION_GRACE_SECONDS,
        "volumes": [
            {"name": _EPP_CONFIG_VOLUME, "configMap": config},
            {"name": _EPP_CACHE_VOLUME, "emptyDir": {}},
        ],
    }


_SYSTEM_PORTS: tuple[Object, ...] = (
    {"name": "system", "port": SYSTEM_PORT, "targetPort": "system", "protocol": "TCP"},
)
_HTTP_PORTS: tuple[Object, ...] = (
    {"name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP"},
)
_EPP_PORTS: tuple[Object, ...] = (
    {"name": "grpc", "port": EPP_GRPC_PORT, "targetPort": EPP_GRPC_PORT, "protocol": "TCP"},
)
_WORKER = Role(_SYSTEM_PORTS, _worker_container)

DEFAULT_ROLE = Role(_SYSTEM_PORTS, _plain_container)
"""The role of custom component types: a shell for the user's arguments."""

ROLES = {
    "frontend": Role(_HTTP_PORTS, _frontend_container),
    "worker": _WORKER,
    "prefill": _WORKER,
    "decode": _WORKER,
    "planner": Role(_SYSTEM_PORTS, _planner_container, _planner_pod),
    "epp": Role(_EPP_PORTS, _epp_container, _epp_pod),
}
"""By `componentType`; every other type has `DEFAULT_ROLE`."""
