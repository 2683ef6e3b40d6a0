"""The init container of workers on several nodes that waits until their leader accepts connections."""

from functools import cache
from importlib.resources import files

from dynamo_operator import names
from dynamo_operator.component.launch import GroupNode
from dynamo_operator.component.objects import object_metadata
from dynamo_operator.component.plan import ComponentPlan, LeaderService
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Object

CONTAINER = "dynamo-wait-for-leader"
"""Name of the init container and its volume. A user's init container of that name replaces it."""

WITHIN_SECONDS = 1800
"""Long enough for a leader's node to pull an image of 20 GB at 100 Mbit/s; then the pod reports why, and
restarts."""

_FOLDER = "/etc/dynamo/wait-for-leader"
_FILE = "wait_for_leader.py"
_COPIED = ("image", "imagePullPolicy", "securityContext", "env", "envFrom")
_SHARED_RESOURCES = frozenset(("cpu", "ephemeral-storage", "memory"))


# The script needs neither permissions nor another image: it connects to the leader, with the
# worker's image, environment, mounts and user, since Ray may require certificates. The resources
# are those of the worker without devices: this keeps the pod's QoS class and costs nothing, because
# init containers run before the others.
def wait_containers(plan: ComponentPlan, node: GroupNode | None, main: Object) -> list[Object]:
    """The init container, on workers that wait. `main` is the pod's main container."""
    if node is None or (service := awaited_leader(plan, node)) is None:
        return []
    if any(CONTAINER == container.get("name") for container in plan.pod.get("initContainers", ())):
        return []
    leader = node.hosts.leader.argument
    protocol = ["ray"] if service.is_ray else []
    mount = {"name": CONTAINER, "mountPath": _FOLDER, "readOnly": True}
    init_container: Object = {
        "name": CONTAINER,
        **{name: main[name] for name in _COPIED if name in main},
        "command": ["python3", f"{_FOLDER}/{_FILE}"],
        "args": [leader, str(service.port), str(WITHIN_SECONDS), *protocol],
        "volumeMounts": [*main.get("volumeMounts", ()), mount],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    # Those that determine the QoS class, without devices and resource claims.
    sides = {
        side: {name: quantity for name, quantity in amounts.items() if name in _SHARED_RESOURCES}
        for side, amounts in main.get("resources", {}).items()
        if side in ("limits", "requests")
    }
    if resources := {side: amounts for side, amounts in sides.items() if amounts}:
        init_container["resources"] = resources
    return [init_container]


def wait_config_maps(plan: ComponentPlan) -> tuple[Object, ...]:
    """The ConfigMap with the script, if workers of the component wait."""
    if plan.nodes == 1 or plan.backend.leader_service(plan) is None:
        return ()
    name = names.leader_wait_config_map(plan.name)
    metadata = object_metadata(plan.namespace, name, plan.labels, plan.annotations)
    return (ConfigMap.KIND.manifest(metadata, data={_FILE: script()}),)


@cache
def script() -> str:
    """The text of the script."""
    return files("dynamo_operator.component").joinpath(f"scripts/{_FILE}").read_text("utf-8")


def awaited_leader(plan: ComponentPlan, node: GroupNode | None) -> LeaderService | None:
    """The service of the leader that a node waits for; None if it does not wait."""
    return None if node is None or node.is_leader else plan.backend.leader_service(plan)
