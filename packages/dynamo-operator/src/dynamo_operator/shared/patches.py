"""Patches of metadata, finalizers above all, and the other writes of a decision."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_operator.labels import FINALIZER
from kube_runtime.apply.result import Applied, Cause, Change, Verb
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import NotFound, Refused, ServerFailure
from kube_runtime.types.meta import Object, R, Resource


@dataclass(frozen=True, slots=True)
class Delete:
    """The deletion of an object. `checks_owner`: only if the cache has the newest state of its owner."""

    live: Resource
    change: Change
    checks_owner: bool = True


@dataclass(frozen=True, slots=True)
class Patch:
    """A merge patch of an object, or of its subresource of type `type_`."""

    live: Resource
    body: Object
    change: Change
    type_: type[Resource]
    subresource: str = ""


Write: TypeAlias = Delete | Patch
"""A write beside the objects that an owner applies. A lost one is repeated by the next reconcile."""


def scaling(
    live: Resource, replicas: int, cause: Cause, type_: type[Resource], subresource: str = "scale"
) -> Patch:
    """Scale a live object. `type_` is the type of the subresource."""
    change = Change(Verb.SCALE, type_.KIND.name, live.metadata.name, f"{cause}: {replicas} replicas")
    return Patch(live, {"spec": {"replicas": replicas}}, change, type_, subresource)


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


async def carry_out(owner: Resource, writes: Iterable[Write], writer: Writer, applied: Applied) -> None:
    """Write one after the other; a refusal is in the result and stops none.

    Raises:
        Conflict: the owner or an object has changed; the caller retries at once.
        OperatorError: the API server could not be reached.
    """
    is_checked = False
    for write in writes:
        live, change = write.live, write.change
        try:
            if isinstance(write, Patch):
                uid, subresource = live.metadata.uid, write.subresource
                await writer.merge_patch(write.type_, live.key, write.body, subresource=subresource, uid=uid)
            else:
                if write.checks_owner and not is_checked:
                    await writer.ensure_newest(owner)
                    is_checked = True
                await writer.delete(live)
        except NotFound:
            if isinstance(write, Delete):
                raise  # the owner is gone
        except (Refused, ServerFailure) as error:
            part = write.subresource if isinstance(write, Patch) else ""
            name = f"{change.name}/{part}" if part else change.name
            applied.refused(change.kind, name, error)
        else:
            applied.record(change)
