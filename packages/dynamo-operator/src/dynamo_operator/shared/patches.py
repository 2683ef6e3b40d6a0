"""Patches of metadata, finalizers above all."""

from dynamo_operator.labels import FINALIZER
from kube_runtime.apply.writer import Writer
from kube_runtime.types.meta import Object, R, Resource


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
    others = other_finalizers(resource)
    return resource if others is None else await patch_metadata(resource, {"finalizers": others}, writer)


def other_finalizers(resource: Resource) -> list[str] | None:
    """The finalizers of an object without ours; None if it does not have it."""
    finalizers = resource.metadata.finalizers
    if FINALIZER not in finalizers:
        return None
    return [finalizer for finalizer in finalizers if finalizer != FINALIZER]
