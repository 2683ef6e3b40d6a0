"""Volumes of the pod and mounts of the main container: the user's, the role's, shared memory.

The API server refuses a volume or a mount path that appears twice: each PVC becomes one volume however
often it is mounted, and a mount of the user replaces ours at the same path.
"""

from collections.abc import Iterable

from dynamo_graphs.api.names import volume_name
from dynamo_graphs.render.interfaces import ComponentPlan
from kube_runtime.kind import Object

SHARED_MEMORY = "shared-memory"
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108  # the mount path that POSIX shared memory uses


def volumes(plan: ComponentPlan, roles: Iterable[Object]) -> list[Object]:
    """The user's volumes, then one per PVC, then the role's, then shared memory."""
    users: list[Object] = plan.pod.get("volumes", [])
    known = {volume.get("name") for volume in users}
    claims = {
        volume_name(mount.claim): {"persistentVolumeClaim": {"claimName": mount.claim}}
        for mount in plan.mounts
    }
    found = [{"name": name, **source} for name, source in claims.items() if name not in known]
    found += (each for each in roles if each["name"] not in known | claims.keys())
    if _has_shared_memory(plan):
        memory = {"medium": "Memory", "sizeLimit": plan.shared_memory_size}
        found.append({"name": SHARED_MEMORY, "emptyDir": memory})
    return [*users, *found]


def mounts(plan: ComponentPlan, roles: Iterable[Object]) -> list[Object]:
    """The user's mounts, then the PVCs, then the role's, then shared memory."""
    users: list[Object] = plan.main_container.get("volumeMounts", [])
    taken = {mount.get("mountPath") for mount in users}
    found = [
        {"name": volume_name(mount.claim), "mountPath": mount.path}
        for mount in plan.mounts
        if mount.path not in taken
    ]
    taken |= {mount.path for mount in plan.mounts}
    found += (each for each in roles if each["mountPath"] not in taken)
    if _has_shared_memory(plan):
        found.append({"name": SHARED_MEMORY, "mountPath": SHARED_MEMORY_PATH})
    return [*users, *found]


def _has_shared_memory(plan: ComponentPlan) -> bool:
    paths = [mount.path for mount in plan.mounts]
    paths += [mount.get("mountPath", "") for mount in plan.main_container.get("volumeMounts", ())]
    return bool(plan.shared_memory_size) and SHARED_MEMORY_PATH not in paths
