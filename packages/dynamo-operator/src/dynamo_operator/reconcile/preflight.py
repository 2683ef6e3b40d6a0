"""What every reconcile begins with: is there anything to do for this object at all?"""

from typing import TypeVar

from structlog.contextvars import bind_contextvars

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.status.pause import paused_status
from dynamo_operator.reconcile.finalizer import without_finalizer
from dynamo_operator.reconcile.report import Reporter
from dynamo_operator.reconcile.unreadable import report_unreadable
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.cache.cache import Cache
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource

T = TypeVar("T", bound=Resource)


async def load_for_reconcile(
    type_: type[T], key: Key, cache: Cache, client: Client, reporter: Reporter
) -> T | Result:
    """The object that is to be brought to what its spec says.

    A result means: nothing more is to be done now. It is gone or going (owner references: the API server
    deletes the rest), it is paused, or its newest state cannot be read; in the last two cases its status
    reports that.

    Raises:
        OperatorError: that could not be written.
    """
    if unreadable := cache.broken(type_, key):
        return await report_unreadable(type_, key, unreadable, client, reporter)
    resource = cache.get(type_, key)
    if resource is None:
        return DONE
    bind_contextvars(graph=resource.metadata.labels.get(labels.GRAPH, resource.metadata.name))
    if resource.metadata.deletion_timestamp:
        await without_finalizer(resource, reporter.writer)
        return DONE
    if is_paused(resource):
        return await report_paused(resource, reporter)
    return await without_finalizer(resource, reporter.writer)


async def report_paused(resource: Resource, reporter: Reporter) -> Result:
    """Say that the object is paused. Its next change wakes us, the end of the pause too."""
    stored = await patch_status(reporter.writer, resource, paused_status(resource))
    if stored is not resource:
        message = f"{labels.PAUSED} is true: the operator writes nothing"
        reporter.recorder.event(resource, reason="Paused", message=message)
    return Result(written=stored)
