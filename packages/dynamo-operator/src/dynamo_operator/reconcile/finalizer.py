"""The finalizer, which only models need: their LoRAs are unloaded before the object goes.

Owner references delete what other objects owned. But the Go operator put this finalizer on graphs and
components too. Once it is gone no one else would remove it, and the object, its namespace as well, would hang
at deletion for ever.
"""

from dynamo_operator.reconcile.patches import patch_metadata
from kube_runtime.apply.writer import Writer
from kube_runtime.types.meta import R

FINALIZER = "nvidia.com/finalizer"
"""The name that the Go operator uses, too."""


async def with_finalizer(resource: R, writer: Writer) -> R:
    """The object with the finalizer; no request if it has it. Raises as `patch_metadata`."""
    finalizers = resource.metadata.finalizers
    if FINALIZER in finalizers:
        return resource
    return await patch_metadata(resource, {"finalizers": [*finalizers, FINALIZER]}, writer)


async def without_finalizer(resource: R, writer: Writer) -> R:
    """The object without it; those of others stay. No request if it has none. Raises as `patch_metadata`."""
    finalizers = resource.metadata.finalizers
    if FINALIZER not in finalizers:
        return resource
    others = [finalizer for finalizer in finalizers if finalizer != FINALIZER]
    return await patch_metadata(resource, {"finalizers": others}, writer)
