"""Patches of single objects that several controllers make: metadata, our finalizer, replicas.

Only models need a finalizer: their LoRAs are unloaded before the object goes. Owner references delete what
the other kinds own. But the Go operator put its finalizer on graphs and components too. We remove it from
them: once that operator is uninstalled, their deletion, and that of their namespace, would hang forever.
"""

from kube_runtime.apply.result import Applied, Cause, Change, Verb, stopped
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import NotFound, Refused, ServerFailure
from kube_runtime.kind import Object
from kube_runtime.types.meta import R, Resource

FINALIZER = "nvidia.com/finalizer"
"""The name that the Go operator uses, too."""


async def patch_metadata(resource: R, change: Object, writer: Writer) -> R:
    """Patch an object's metadata, and return the new object.

    Raises:
        Conflict: it has changed since it was read; the caller retries at once.
        OperatorError: the patch failed.
    """
    metadata = resource.metadata
    patch = {"metadata": {**change, "resourceVersion": metadata.resource_version}}
    return await writer.merge_patch(type(resource), resource.key, patch, uid=metadata.uid)


async def with_finalizer(resource: R, writer: Writer) -> R:
    """Add our finalizer; no request if the object has it. Raises as `patch_metadata`."""
    finalizers = resource.metadata.finalizers
    if FINALIZER in finalizers:
        return resource
    return await patch_metadata(resource, {"finalizers": [*finalizers, FINALIZER]}, writer)


async def without_finalizer(resource: R, writer: Writer) -> R:
    """Remove our finalizer and no other; no request if the object has none. Raises as `patch_metadata`."""
    finalizers = resource.metadata.finalizers
    if FINALIZER not in finalizers:
        return resource
    others = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
    return await patch_metadata(resource, {"finalizers": others}, writer)


async def patch_replicas(
    live: Resource,
    replicas: int,
    writer: Writer,
    cause: Cause,
    *,
    type_: type[Resource],
    subresource: str = "scale",
) -> Applied:
    """Scale a live object. `type_` is the type of the subresource."""
    kind, name = type_.KIND.name, live.metadata.name
    patch = {"spec": {"replicas": replicas}}
    uid = live.metadata.uid
    try:
        await writer.merge_patch(type_, live.key, patch, subresource=subresource, uid=uid)
    except NotFound:
        return Applied()  # its deletion wakes the owner
    except (Refused, ServerFailure) as error:
        return stopped(kind, f"{name}/scale", error)
    return Applied(changes=(Change(Verb.SCALE, kind, name, f"{cause}: {replicas} replicas"),))
