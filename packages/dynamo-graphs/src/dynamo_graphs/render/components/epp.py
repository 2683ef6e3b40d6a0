"""The endpoint picker: chooses a worker for each request that a gateway brings to the pool."""

from dynamo_graphs.api.names import EPP_SERVICE_ACCOUNT, inference_pool
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.merge import variable
from dynamo_graphs.types.inference import InferencePool
from kube_runtime.kind import Object

GRPC_PORT = 9002
CONFIG_FILE = "epp-config-dynamo.yaml"

_HEALTH_PORT = 9003
_METRICS_PORT = 9090
_CONFIG_VOLUME = "epp-config"
_CONFIG_FOLDER = "/etc/epp"
_CACHE_VOLUME = "hf-cache"
_CACHE_FOLDER = "/home/nonroot/.cache"
_TERMINATION_GRACE_SECONDS = 130


def container(plan: ComponentPlan) -> Object:
    """The image's own entrypoint, with its pool and its configuration."""
    probe: Object = {
        "grpc": {"port": _HEALTH_PORT, "service": "inference-extension"},
        "initialDelaySeconds": 5,
        "periodSeconds": 10,
    }
    return {
        "name": "main",
        "args": _arguments(plan),
        "ports": [
            {"name": "grpc", "containerPort": GRPC_PORT, "protocol": "TCP"},
            {"name": "grpc-health", "containerPort": _HEALTH_PORT, "protocol": "TCP"},
            {"name": "metrics", "containerPort": _METRICS_PORT, "protocol": "TCP"},
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
            {"name": _CONFIG_VOLUME, "mountPath": _CONFIG_FOLDER, "readOnly": True},
            {"name": _CACHE_VOLUME, "mountPath": _CACHE_FOLDER},
        ],
    }


def _arguments(plan: ComponentPlan) -> list[str]:
    values = {
        "-pool-name": inference_pool(plan.graph),
        "-pool-namespace": plan.namespace,
        "-pool-group": InferencePool.KIND.group,
        "-v": "4",
        "--zap-encoder": "json",
        "-grpc-port": str(GRPC_PORT),
        "-grpc-health-port": str(_HEALTH_PORT),
        "-config-file": f"{_CONFIG_FOLDER}/{CONFIG_FILE}",
    }
    return [word for flag, value in values.items() for word in (flag, value)]


def pod(plan: ComponentPlan) -> Object:
    """The picker's ServiceAccount, a long grace period, its configuration and a place for tokenizers."""
    source = plan.epp_config
    config = {
        "name": source.config_map,
        "items": [{"key": source.key, "path": CONFIG_FILE}],
    }
    return {
        "serviceAccountName": EPP_SERVICE_ACCOUNT,
        "terminationGracePeriodSeconds": _TERMINATION_GRACE_SECONDS,
        "volumes": [
            {"name": _CONFIG_VOLUME, "configMap": config},
            {"name": _CACHE_VOLUME, "emptyDir": {}},
        ],
    }


def service_ports() -> tuple[Object, ...]:
    """What the gateway asks."""
    return ({"name": "grpc", "port": GRPC_PORT, "targetPort": GRPC_PORT, "protocol": "TCP"},)
