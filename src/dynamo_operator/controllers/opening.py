"""What every reconcile begins with: is there anything to do for this object at all?"""

from typing import TypeVar

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.controllers.finalizer import without_finalizer
from dynamo_operator.controllers.pause import report_paused
from dynamo_operator.controllers.unreadable import report_unreadable
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.events import Recorder
from dynamo_operator.kube.kind import Key
from dynamo_operator.kube.writer import Writer
from dynamo_operator.status.pause import is_paused

T = TypeVar("T", DynamoGraphDeployment, DynamoComponentDeployment)


async def to_reconcile(
    type_: type[T], key: Key, *, cache: Cache, client: Client, writer: Writer, recorder: Recorder
) -> T | None:
    """The object that is to be brought to what its spec says.

    None means: nothing is to be done now. It is gone or going (owner references: the API server deletes the
    rest), it is paused, or its newest state cannot be read; the last two it has been told.

    Raises:
        OperatorError: that could not be written.
    """
    if unreadable := cache.broken(type_, key):
        await report_unreadable(
            type_, key, unreadable, client=client, writer=writer, recorder=recorder
        )
        return None
    found = cache.get(type_, key)
    if found is None:
        return None
    if found.metadata.deletion_timestamp:
        await without_finalizer(found, writer)
        return None
    if is_paused(found):
        await report_paused(found, writer, recorder)
        return None
    return await without_finalizer(found, writer)
