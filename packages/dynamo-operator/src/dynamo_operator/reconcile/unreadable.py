"""Report an object of ours whose newest state does not fit its type, on that object.

The object cannot be decoded. So it is read again as a bare object with its metadata and its conditions
only, and nothing is done for it: its last readable spec is no longer what its owner wants.
"""

from functools import cache
from typing import NamedTuple

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.plan.model import ModelReason
from dynamo_graphs.plan.request import RequestReason
from dynamo_graphs.status.graph import GraphState
from dynamo_graphs.status.reasons import ComponentReason, GraphReason
from dynamo_graphs.status.scaling import ScalingReason
from dynamo_graphs.status.stop import Stop
from dynamo_operator.reconcile.finalizer import without_finalizer
from dynamo_operator.reconcile.report import record_events
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import Recorder
from kube_runtime.errors import DecodeError, TooLarge
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.text import cut
from kube_runtime.types.meta import Condition, Resource, Struct

_MESSAGE_LIMIT = 1024


class _BareStatus(Struct):
    """The part of a status that is the same for all kinds."""

    state: str = ""
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    ready_endpoints: int | None = None
    total_endpoints: int | None = None


class _Bare(Resource):
    """An object without what it is about."""

    status: _BareStatus = _BareStatus()


class Words(NamedTuple):
    """The conditions of a kind, and their reasons when an object cannot be read, or is too large."""

    conditions: tuple[str, ...]
    unreadable: str
    too_large: str


WORDS: dict[type[Resource], Words] = {
    DynamoGraphDeployment: Words(("Ready",), GraphReason.DECODE_FAILED, GraphReason.TOO_LARGE),
    DynamoComponentDeployment: Words(
        ("Available", "DynamoComponentReady"),
        ComponentReason.DECODE_FAILED,
        ComponentReason.TOO_LARGE,
    ),
    DynamoGraphDeploymentScalingAdapter: Words(
        ("Ready",), ScalingReason.DECODE_FAILED, ScalingReason.TOO_LARGE
    ),
    DynamoModel: Words(("Valid",), ModelReason.DECODE_FAILED, ModelReason.TOO_LARGE),
    DynamoGraphDeploymentRequest: Words(
        ("Succeeded",), RequestReason.UNREADABLE, RequestReason.TOO_LARGE
    ),
}
"""By kind. A process that serves others adds theirs."""


@cache
def _bare_type(kind: Kind) -> type[_Bare]:
    """The kind without what its objects are about."""
    return type(f"Bare{kind.name}", (_Bare,), {"KIND": kind})


async def report_unreadable(
    type_: type[Resource],
    key: Key,
    error: DecodeError,
    *,
    client: Client,
    writer: Writer,
    recorder: Recorder,
) -> Result:
    """Say on the object why it cannot be read, or is not: it is too large. Its next change wakes us again.

    Raises:
        NotFound: it is gone.
        OperatorError: not even its metadata and conditions could be read, or nothing could be written.
    """
    bare = await client.get(_bare_type(type_.KIND), key)
    if bare.metadata.deletion_timestamp:
        await without_finalizer(bare, writer)
        return DONE
    generation = bare.metadata.generation
    is_large = isinstance(error, TooLarge)
    words = WORDS[type_]
    text, reason = f"Cannot read the object: {error.message}", words.unreadable
    if is_large:
        text, reason = (
            f"Not processed: {error.message}. Running pods keep running.",
            words.too_large,
        )
    text = cut(text, _MESSAGE_LIMIT)
    status: Object = {
        "conditions": [
            Condition(each, "False", reason, text, observed_generation=generation)
            for each in words.conditions
        ]
    }
    if type_ is DynamoGraphDeployment:
        status["state"] = str(GraphState.FAILED)
    if type_ is DynamoModel:  # the schema wants both in every status
        status["readyEndpoints"] = bare.status.ready_endpoints or 0
        status["totalEndpoints"] = bare.status.total_endpoints or 0
    stop = Stop(status, "TooLarge" if is_large else "DecodeFailed", [text])
    stored = await patch_status(writer, bare, stop.status)
    record_events(recorder, bare, stored, stop=stop)
    return DONE
