"""What every reconcile begins with: is there anything to do for this object at all?"""

from typing import TypeVar

from structlog.contextvars import bind_contextvars

from dynamo_graphs.api import labels
from dynamo_graphs.api.pause import is_paused
from dynamo_operator.reconcile.finalizer import without_finalizer
from dynamo_operator.reconcile.pause import report_paused
from dynamo_operator.reconcile.unreadable import report_unreadable
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import Recorder
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource

T = TypeVar("T", bound=Resource)


async def load_for_reconcile(
    type_: type[T], key: Key, *, cache: Cache, client: Client, writer: Writer, recorder: Recorder
) -> T | Result:
    """The object that is to be brought to what its spec says.

    A result means: nothing more is to be done now. It is gone or going (owner references: the API server
    deletes the rest), it is paused, or its newest state cannot be read; in the last two cases its status
    reports that.

    Raises:
        OperatorError: that could not be written.
    """
    if unreadable := cache.broken(type_, key):
        return await report_unreadable(
            type_, key, unreadable, client=client, writer=writer, recorder=recorder
        )
    found = cache.get(type_, key)
    if found is None:
        return DONE
    bind_contextvars(graph=found.metadata.labels.get(labels.GRAPH, found.metadata.name))
    if found.metadata.deletion_timestamp:
        await without_finalizer(found, writer)
        return DONE
    if is_paused(found):
        return await report_paused(found, writer, recorder)
    return await without_finalizer(found, writer)
