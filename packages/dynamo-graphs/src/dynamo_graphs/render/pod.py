"""The pod template of a component.

The order of entries must not change, since it would replace running pods: the user's sidecars come first
and the main container last. The main container is the role's default with the user's overrides and the
fields of the spec.

The API server rejects duplicate volumes and mount paths: each PVC becomes one volume however often it is
mounted, and a mount of the user replaces the operator's at the same path.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import WORKER_TYPES
from dynamo_graphs.api.names import volume_name
from dynamo_graphs.facts import NamespaceDefaults
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.launch import GroupNode
from dynamo_graphs.render.leader_wait import wait_containers, wait_volumes
from dynamo_graphs.render.merge import (
    has_handler,
    merged,
    merged_environment,
    merged_probe,
    variable,
    variable_of_field,
    with_device_limits,
)
from dynamo_graphs.render.roles import TERMINATION_GRACE_SECONDS
from kube_runtime.kind import Object

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
    added = (*roles.get("volumes", ()), *launched, *wait_volumes(plan, node))
    lists: dict[str, list[Any]] = {
        "initContainers": [*pod.get("initContainers", ()), *wait_containers(plan, node, main)],
        "containers": [*pod.get("containers", ()), main],
        "volumes": _volumes(plan, added),
        "imagePullSecrets": _pull_secrets(plan),
    }
    if is_debug or plan.is_on(labels.DEBUG_MODE):
        lists["containers"].append(_debugger(plan.settings.debugger_image))
        pod["shareProcessNamespace"] = True
    return pod | {name: entries for name, entries in lists.items() if entries}


def namespace_defaults_record(*plans: ComponentPlan) -> dict[str, str]:
    """The annotation of a workload with what the pods of these plans get from their namespace."""
    by_component = {
        plan.name: plan.namespace_defaults
        for plan in plans
        if plan.namespace_defaults != NamespaceDefaults()
    }
    if not by_component:
        return {}
    return {labels.NAMESPACE_DEFAULTS: _ENCODER.encode(by_component).decode()}


def _pull_secrets(plan: ComponentPlan) -> list[Object]:
    users: list[Object] = plan.pod.get("imagePullSecrets", [])
    taken = {entry.get("name") for entry in users}
    more = plan.namespace_defaults.image_pull_secrets or ()
    return [*users, *({"name": name} for name in more if name not in taken)]


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
    """The container that runs the component; `node` is the position in a multinode group."""
    default = plan.role.container(plan)
    container: Object = dict(merged(default, plan.main_container))
    container |= _probes(default, plan)
    container["env"] = _environment(default, plan)
    if resources := _merged_resources(container.get("resources", {}), plan.resources):
        container["resources"] = resources
    if plan.environment_secret:
        source = {"secretRef": {"name": plan.environment_secret}}
        container["envFrom"] = [*container.get("envFrom", ()), source]
    if mounted := _mounts(plan, default.get("volumeMounts", ())):
        container["volumeMounts"] = mounted
    container = plan.backend.container(container, plan)
    return plan.backend.launch(container, plan, node) if node else container


def _probes(default: Object, plan: ComponentPlan) -> dict[str, Object]:
    """Merge the user's probes over the defaults.

    A startup probe with a handler, and the probes of the component's spec, replace the default as a whole.
    """
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


def _in_place_of_servers(plan: ComponentPlan, names: set[str]) -> list[Object]:
    """What replaces etcd and NATS for a component without their addresses; the user's values win.

    Runtime 0.9.0 would look for both at localhost and exit. Over ZMQ a router reads the events it missed from
    the workers' indexers; without those it would need NATS after all (decision 71).
    """
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
    """Variables that identify component, graph and pod."""
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


def _merged_resources(container: Object, component: Object) -> Object:
    """Merge the component's resources over the container's; resource claims are combined."""
    both: Object = dict(merged(container, component))
    claims = [*container.get("claims", ()), *component.get("claims", ())]
    if claims:
        both["claims"] = list({claim["name"]: claim for claim in claims}.values())
    return with_device_limits(both)


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
