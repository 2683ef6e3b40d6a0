"""Patches of single objects that several controllers make."""

from kube_runtime.apply.result import Applied, Cause, Change, Verb, rejected
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Forbidden, Invalid, NotFound
from kube_runtime.kind import Object
from kube_runtime.types.meta import R, Resource


async def patch_metadata(resource: R, change: Object, writer: Writer) -> R:
    """The object of ours with this change of its metadata.

    Raises:
        Conflict: it has changed since it was read; the caller retries at once.
        OperatorError: that could not be written.
    """
    metadata = resource.metadata
    patch = {"metadata": {**change, "resourceVersion": metadata.resource_version}}
    return await writer.merge_patch(type(resource), resource.key, patch, uid=metadata.uid)


async def patch_replicas(
    live: Resource,
    replicas: int,
    writer: Writer,
    cause: Cause,
    *,
    type_: type[Resource],
    subresource: str = "scale",
) -> Applied:
    """Give a live object another number of replicas. `type_` is that of the subresource."""
    kind, name = type_.KIND.name, live.metadata.name
    patch = {"spec": {"replicas": replicas}}
    uid = live.metadata.uid
    try:
        await writer.merge_patch(type_, live.key, patch, subresource=subresource, uid=uid)
    except NotFound:
        return Applied()  # its removal wakes us
    except (Invalid, Forbidden) as error:
        return Applied(blocked=(rejected(kind, f"{name}/scale", error),))
    return Applied(changes=(Change(Verb.SCALE, kind, name, f"{cause}: {replicas} replicas"),))
