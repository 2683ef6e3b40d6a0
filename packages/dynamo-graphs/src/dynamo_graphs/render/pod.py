"""The pod template of a component: defaults, overrides, volumes, ServiceAccounts, in a fixed order.

The order decides precedence, and running graphs depend on it. Side containers of the user come first and
the main container last.
"""

from typing import Any

from dynamo_graphs.api import labels
from dynamo_graphs.render.components.plain import TERMINATION_GRACE_SECONDS
from dynamo_graphs.render.container import main_container
from dynamo_graphs.render.group import GroupNode
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.leader_wait import wait_containers, wait_volumes
from dynamo_graphs.render.merge import merged
from dynamo_graphs.render.volumes import volumes
from kube_runtime.kind import Object

_FS_GROUP = 1000


def pod_template(
    plan: ComponentPlan, workload: str, *, node: GroupNode | None = None, is_debug: bool = False
) -> Object:
    """The template of the pods that `workload` runs; `is_debug` is the copy to step through."""
    own = {labels.TARGET_TYPE: "debug"} if is_debug else {}
    found: Object = {
        "labels": plan.pod_labels | own | {labels.SELECTOR: workload, plan.workload_label: workload}
    }
    if plan.pod_annotations:
        found["annotations"] = plan.pod_annotations
    return {"metadata": found, "spec": pod_spec(plan, node, is_debug=is_debug)}


def pod_spec(plan: ComponentPlan, node: GroupNode | None, *, is_debug: bool = False) -> Object:
    """The spec of the component's pods; as one of a group if `node` says which one."""
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
    main = main_container(plan, node)
    launched = plan.backend.launch_volumes(plan) if node else ()
    added = (*roles.get("volumes", ()), *launched, *wait_volumes(plan, node))
    lists: dict[str, list[Any]] = {
        "initContainers": [*pod.get("initContainers", ()), *wait_containers(plan, node, main)],
        "containers": [*pod.get("containers", ()), main],
        "volumes": volumes(plan, added),
        "imagePullSecrets": _pull_secrets(plan),
    }
    if is_debug or plan.is_on(labels.DEBUG_MODE):
        lists["containers"].append(_debugger(plan.settings.debugger_image))
        pod["shareProcessNamespace"] = True
    return pod | {name: entries for name, entries in lists.items() if entries}


def _pull_secrets(plan: ComponentPlan) -> list[Object]:
    users: list[Object] = plan.pod.get("imagePullSecrets", [])
    known = {entry.get("name") for entry in users}
    return [*users, *({"name": name} for name in plan.pull_secrets if name not in known)]


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
