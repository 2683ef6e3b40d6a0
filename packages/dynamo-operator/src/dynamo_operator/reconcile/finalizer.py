"""Takes away the finalizer that the Go operator put on graphs and components.

Ours needs none: owner references delete what an object owned. But once the Go operator is gone no one else
would remove it, and the object, its namespace as well, would hang at deletion for ever.
"""

from kube_runtime.apply.writer import Writer
from kube_runtime.kind import Object
from kube_runtime.types.meta import R

FINALIZER = "nvidia.com/finalizer"
"""The name that the Go operator uses, too."""


async def without_finalizer(found: R, writer: Writer) -> R:
    """The object without that finalizer; those of others stay. No request if it has none.

    Raises:
        Conflict: it has changed meanwhile; the caller retries at once.
        OperatorError: that could not be written.
    """
    metadata = found.metadata
    if FINALIZER not in metadata.finalizers:
        return found
    others = [each for each in metadata.finalizers if each != FINALIZER]
    patch: Object = {
        "metadata": {"finalizers": others, "resourceVersion": metadata.resource_version}
    }
    return await writer.merge_patch(type(found), found.key, patch, uid=metadata.uid)
