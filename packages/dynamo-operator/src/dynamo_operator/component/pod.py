"""The pod template of a component.

The order of entries must not change, since it would replace running pods: the user's sidecars come first
and the main container last. The main container is the role's default with the user's overrides and the
fields of the spec.

The API server rejects duplicate volumes and mount paths: each PVC becomes one volume however often it is
mounted, and a mount of the user replaces the operator's at the same path.
"""

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import WORKER_TYPES
from dynamo_operator.component.launch import SHELL, GroupNode
from dynamo_operator.component.objects import (
    has_handler,
    merged,
    merged_environment,
    merged_probe,
    merged_resources,
    variable,
    variable_of_field,
)
from dynamo_operator.component.plan import ComponentPlan, Role
from dynamo_operator.component.wait_for_leader import CONTAINER, awaited_leader, wait_containers
from dynamo_operator.names import EPP_SERVICE_ACCOUNT, PLANNER_SERVICE_ACCOUNT, volume_name
from dynamo_operator.shared.cluster import InferencePool, NamespaceDefaults
from kube_runtime.types.meta import Object

HTTP_PORT = 8000
SYSTEM_PORT = 9090
"""Port of a worker's system server."""

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


def _get(path: str, port: str) -> Object:
    return {"httpGet": {"path": path, "port": port}}


def _probe(handler: Object, *, period: int, timeout: int, failures: int, delay: int = 0) -> Object:
    numbers = {"periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": failures}
    return handler | numbers | ({"initialDelaySeconds": delay} if delay else {})


_HEALTHY = 'curl -s http://localhost:${DYNAMO_PORT}/health | jq -e ".status == \\"healthy\\""'
_WORKER_STARTUP = _probe(_get("/live", "system"), period=10, timeout=5, failures=720)
# There are two profiles of default probes: `http` is that of the Go operator; `documented` follows
# the published API reference to the letter, whose frontend check needs curl and jq in the image.
_PROBES: dict[Literal["http", "documented"], dict[str, dict[str, Object]]] = {
    "http": {
        "frontend": {
            "livenessProbe": _probe(_get("/live", "http"), delay=15, period=10, timeout=1, failures=3),
            "readinessProbe": _probe(_get("/health", "http"), delay=10, period=10, timeout=3, failures=3),
        },
        "worker": {
            "livenessProbe": _probe(_get("/live", "system"), period=5, timeout=4, failures=1),
            "readinessProbe": _probe(_get("/health", "system"), period=10, timeout=4, failures=3),
            "startupProbe": _WORKER_STARTUP,
        },
    },
    "documented": {
        "frontend": {
            "livenessProbe": _probe(_get("/health", "http"), delay=60, period=60, timeout=30, failures=10),
            "readinessProbe": _probe(
                {"exec": {"command": [*SHELL, _HEALTHY]}}, delay=60, period=60, timeout=30, failures=10
            ),
        },
        "worker": {
            "livenessProbe": _probe(_get("/live", "system"), period=5, timeout=30, failures=1),
            "readinessProbe": _probe(_get("/health", "system"), period=10, timeout=30, failures=60),
            "startupProbe": _WORKER_STARTUP,
        },
    },
}


def _frontend_container(plan: ComponentPlan) -> Object:
    return {
        "name": "main",
        "command": ["python3"],
        "args": ["-m", "dynamo.frontend"],
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        "env": [variable(name, str(HTTP_PORT)) for name in ("DYNAMO_PORT", "DYN_HTTP_PORT")],
        **_PROBES[plan.settings.probe_profile]["frontend"],
    }


def _worker_container(plan: ComponentPlan) -> Object:
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


# With Kubernetes discovery a terminating pod leaves the EndpointSlices at once, but frontends notice
# later, and runtime 0.9.0 exits on SIGTERM while requests are on their way to it (docs/real-node.md).
# With etcd a worker leaves discovery only when its process ends, so waiting would not help.
def _drain(plan: ComponentPlan) -> Object:
    own = plan.main_container.get("lifecycle") or {}
    if not plan.is_discovered_by_kubernetes or own.get("preStop"):
        return {}
    grace = plan.pod.get("terminationGracePeriodSeconds")
    # The API server rejects a sleep longer than the grace period; half of it is left for running requests.
    longest = (TERMINATION_GRACE_SECONDS if grace is None else grace) // 2
    seconds = min(plan.settings.worker_drain_period_seconds, longest)
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}} if seconds > 0 else {}


def _planner_container(_plan: ComponentPlan) -> Object:
    ports = [{"name": "metrics", "containerPort": PLANNER_METRICS_PORT, "protocol": "TCP"}]
    env = [variable("PLANNER_PROMETHEUS_PORT", str(PLANNER_METRICS_PORT))]
    return {"name": "main", "command": list(SHELL), "ports": ports, "env": env}


def _epp_container(plan: ComponentPlan) -> Object:
    probe: Object = {
        "grpc": {"port": _EPP_HEALTH_PORT, "service": "inference-extension"},
        "initialDelaySeconds": 5,
        "periodSeconds": 10,
    }
    return {
        "name": "main",
        "args": [
            *("-pool-name", names.inference_pool(plan.graph)),
            *("-pool-namespace", plan.namespace),
            *("-pool-group", InferencePool.KIND.group),
            *("-v", "4"),
            *("--zap-encoder", "json"),
            *("-grpc-port", str(EPP_GRPC_PORT)),
            *("-grpc-health-port", str(_EPP_HEALTH_PORT)),
            *("-config-file", f"{_EPP_CONFIG_FOLDER}/{EPP_CONFIG_FILE}"),
        ],
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


def _epp_pod(plan: ComponentPlan) -> Object:
    chosen = (plan.spec.epp_config.config_map_ref if plan.spec.epp_config else None) or {}
    name, key = names.epp_config_map(plan.graph), EPP_CONFIG_FILE
    if chosen.get("name"):
        name, key = chosen["name"], chosen.get("key") or key
    config = {"name": name, "items": [{"key": key, "path": EPP_CONFIG_FILE}]}
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

DEFAULT_ROLE = Role(_SYSTEM_PORTS, lambda _plan: {"name": "main", "command": list(SHELL)})
"""The role of custom component types: a shell for the user's arguments."""

ROLES = {
    "frontend": Role(_HTTP_PORTS, _frontend_container),
    "worker": _WORKER,
    "prefill": _WORKER,
    "decode": _WORKER,
    "planner": Role(
        _SYSTEM_PORTS, _planner_container, lambda _plan: {"serviceAccountName": PLANNER_SERVICE_ACCOUNT}
    ),
    "epp": Role(_EPP_PORTS, _epp_container, _epp_pod),
}
"""By `componentType`; every other type has `DEFAULT_ROLE`."""


_ENCODER = msgspec.json.Encoder(order="deterministic")
_FS_GROUP = 1000
_SHARED_MEMORY = "shared-memory"
_SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108  # the mount path that POSIX shared memory uses


def pod_template(
    plan: ComponentPlan, workload: str, *, node: GroupNode | None = None, is_debug: bool = False
) -> Object:
    """Return the template of the pods of `workload`; with `is_debug` of the copy for debugging."""
    own = {labels.TARGET_TYPE: "debug"} if is_debug else {}
    metadata: Object = {
        "labels": plan.pod_labels | own | {labels.SELECTOR: workload, plan.workload_label: workload}
    }
    if plan.pod_annotations:
        metadata["annotations"] = plan.pod_annotations
    return {"metadata": metadata, "spec": pod_spec(plan, node, is_debug=is_debug)}


def pod_spec(plan: ComponentPlan, node: GroupNode | None, *, is_debug: bool = False) -> Object:
    """Return the spec of the component's pods; `node` is the position in a multinode group."""
    roles = plan.role.pod(plan)
    account = {"serviceAccountName": plan.service_account} if plan.service_account else {}
    defaults: Object = {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": TERMINATION_GRACE_SECONDS,
        **account,
        **roles,
    }
    pod: Object = dict(merged(defaults, plan.pod))
    if "securityContext" not in pod:
        pod["securityContext"] = {"fsGroup": _FS_GROUP}
    main = _main_container(plan, node)
    launched = plan.backend.launch_volumes(plan) if node else ()
    added = [*roles.get("volumes", ()), *launched]
    if awaited_leader(plan, node):
        added.append({"name": CONTAINER, "configMap": {"name": names.leader_wait_config_map(plan.name)}})
    secrets: list[Object] = plan.pod.get("imagePullSecrets", [])
    named = {entry.get("name") for entry in secrets}
    found = plan.namespace_defaults.image_pull_secrets or ()
    lists: dict[str, list[Any]] = {
        "initContainers": [*pod.get("initContainers", ()), *wait_containers(plan, node, main)],
        "containers": [*pod.get("containers", ()), main],
        "volumes": _volumes(plan, added),
        "imagePullSecrets": [*secrets, *({"name": name} for name in found if name not in named)],
    }
    if is_debug or plan.is_on(labels.DEBUG_MODE):
        lists["containers"].append(_debugger(plan.settings.debugger_image))
        pod["shareProcessNamespace"] = True
    return pod | {name: entries for name, entries in lists.items() if entries}


def namespace_defaults_record(*plans: ComponentPlan) -> dict[str, str]:
    """The annotation of a workload with what the pods of these plans get from their namespace."""
    by_component = {
        plan.name: plan.namespace_defaults for plan in plans if plan.namespace_defaults != NamespaceDefaults()
    }
    if not by_component:
        return {}
    return {labels.NAMESPACE_DEFAULTS: _ENCODER.encode(by_component).decode()}


def _debugger(image: str) -> Object:
    return {
        "name": "debugger",
        "image": image,
        "command": ["sleep", "infinity"],
        "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}},
        "resources": {
            "requests": {"cpu": "100m", "memory": "100Mi"},
            "limits": {"cpu": "1000m", "memory": "1000Mi"},
        },
        "stdin": True,
        "tty": True,
    }


def _main_container(plan: ComponentPlan, node: GroupNode | None) -> Object:
    default = plan.role.container(plan)
    container: Object = dict(merged(default, plan.main_container))
    container |= _probes(default, plan)
    container["env"] = _environment(default, plan)
    if resources := merged_resources(container.get("resources", {}), plan.resources):
        container["resources"] = resources
    if plan.spec.env_from_secret:
        source = {"secretRef": {"name": plan.spec.env_from_secret}}
        container["envFrom"] = [*container.get("envFrom", ()), source]
    if mounted := _mounts(plan, default.get("volumeMounts", ())):
        container["volumeMounts"] = mounted
    container = plan.backend.container(container, plan)
    return plan.backend.launch(container, plan, node) if node else container


# A startup probe with a handler, and the probes of the component's spec, replace the default as a whole.
def _probes(default: Object, plan: ComponentPlan) -> dict[str, Object]:
    users = plan.main_container
    merging = {
        name: merged_probe(default.get(name, {}), users[name])
        for name in ("livenessProbe", "readinessProbe")
        if name in users
    }
    startup: Object = users.get("startupProbe") or {}
    if startup and not has_handler(startup):
        startup = merged_probe(default.get("startupProbe", {}), startup)
    return merging | ({"startupProbe": startup} if startup else {}) | plan.probes


def _environment(default: Object, plan: ComponentPlan) -> list[Object]:
    lowest = [*_infrastructure(plan), *_identity(plan), *default.get("env", ())]
    container = merged_environment(lowest, plan.main_container.get("env", ()))
    environment = merged_environment(container, plan.environment)
    names = {entry["name"] for entry in environment}
    return merged_environment(_in_place_of_servers(plan, names), environment)


# Without addresses of etcd and NATS, runtime 0.9.0 would look for both at localhost and exit. Over ZMQ a
# router reads the events it missed from the workers' indexers; without those it would need NATS after
# all (decision 71).
def _in_place_of_servers(plan: ComponentPlan, names: set[str]) -> list[Object]:
    variables: list[Object] = []
    if plan.is_discovered_by_kubernetes and "ETCD_ENDPOINTS" not in names:
        variables.append(variable("DYN_STORE_KV", "mem"))
    if "NATS_SERVER" not in names:
        variables.append(variable("DYN_EVENT_PLANE", "zmq"))
        if plan.component_type in WORKER_TYPES:
            variables.append(variable("DYN_LOCAL_INDEXER", "true"))
    return variables


def _infrastructure(plan: ComponentPlan) -> list[Object]:
    settings = plan.settings
    values = {
        "ETCD_ENDPOINTS": settings.etcd_address,
        "MODEL_EXPRESS_URL": settings.model_express_url,
        "NATS_SERVER": settings.nats_address,
        "PROMETHEUS_ENDPOINT": settings.prometheus_endpoint,
    }
    return [variable(name, value) for name, value in values.items() if value]


def _identity(plan: ComponentPlan) -> list[Object]:
    variables = [
        variable("DYN_COMPONENT", plan.component_type),
        variable("DYN_NAMESPACE", plan.dynamo_namespace),
        variable("DYN_PARENT_DGD_K8S_NAME", plan.graph),
        variable("DYN_PARENT_DGD_K8S_NAMESPACE", plan.namespace),
        variable_of_field("POD_NAME", "metadata.name"),
        variable_of_field("POD_NAMESPACE", "metadata.namespace"),
        variable_of_field("POD_UID", "metadata.uid"),
    ]
    if plan.is_discovered_by_kubernetes:
        variables.append(variable("DYN_DISCOVERY_BACKEND", "kubernetes"))
    return variables


def _volumes(plan: ComponentPlan, roles: Iterable[Object]) -> list[Object]:
    """The user's volumes, then one per PVC, then the role's, then shared memory."""
    users: list[Object] = plan.pod.get("volumes", [])
    names = {volume.get("name") for volume in users}
    claims = {
        volume_name(mount.claim): {"persistentVolumeClaim": {"claimName": mount.claim}}
        for mount in plan.mounts
    }
    added = [{"name": name, **source} for name, source in claims.items() if name not in names]
    added += (volume for volume in roles if volume["name"] not in names | claims.keys())
    if _has_shared_memory(plan):
        memory = {"medium": "Memory", "sizeLimit": plan.shared_memory_size}
        added.append({"name": _SHARED_MEMORY, "emptyDir": memory})
    return [*users, *added]


def _mounts(plan: ComponentPlan, roles: Iterable[Object]) -> list[Object]:
    """The user's mounts, then the PVCs, then the role's, then shared memory."""
    users: list[Object] = plan.main_container.get("volumeMounts", [])
    taken = {mount.get("mountPath") for mount in users}
    added = [
        {"name": volume_name(mount.claim), "mountPath": mount.path}
        for mount in plan.mounts
        if mount.path not in taken
    ]
    taken |= {mount.path for mount in plan.mounts}
    added += (mount for mount in roles if mount["mountPath"] not in taken)
    if _has_shared_memory(plan):
        added.append({"name": _SHARED_MEMORY, "mountPath": _SHARED_MEMORY_PATH})
    return [*users, *added]


def _has_shared_memory(plan: ComponentPlan) -> bool:
    paths = [mount.path for mount in plan.mounts]
    paths += [mount.get("mountPath", "") for mount in plan.main_container.get("volumeMounts", ())]
    return bool(plan.shared_memory_size) and _SHARED_MEMORY_PATH not in paths
