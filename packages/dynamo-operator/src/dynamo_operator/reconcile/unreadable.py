"""Report an object of ours whose newest state does not fit its type, on that object.

The object cannot be decoded. So it is read again as a bare object with its metadata and its conditions
only, and nothing is done for it: its last readable spec is no longer what its owner wants.
"""

from typing import ClassVar, TypeAlias

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
from kube_runtime.kind import Key, Object
from kube_runtime.text import cut
from kube_runtime.types.meta import Condition, Resource, Struct

_MESSAGE_LIMIT = 1024


_Reason: TypeAlias = GraphReason | ComponentReason | ScalingReason | ModelReason | RequestReason


class _BareStatus(Struct):
    """The part of a status that is the same for all kinds."""

    state: str = ""
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    ready_endpoints: int | None = None
    total_endpoints: int | None = None


class _Bare(Resource):
    """An object without what it is about."""

    REASON: ClassVar[_Reason]
    TOO_LARGE: ClassVar[_Reason]
    CONDITIONS: ClassVar[tuple[str, ...]]

    status: _BareStatus = _BareStatus()


class _BareGraph(_Bare):
    KIND = DynamoGraphDeployment.KIND
    REASON = GraphReason.DECODE_FAILED
    TOO_LARGE = GraphReason.TOO_LARGE
    CONDITIONS = ("Ready",)


class _BareComponent(_Bare):
    KIND = DynamoComponentDeployment.KIND
    REASON = ComponentReason.DECODE_FAILED
    TOO_LARGE = ComponentReason.TOO_LARGE
    CONDITIONS = ("Available", "DynamoComponentReady")


class _BareAdapter(_Bare):
    KIND = DynamoGraphDeploymentScalingAdapter.KIND
    REASON = ScalingReason.DECODE_FAILED
    TOO_LARGE = ScalingReason.TOO_LARGE
    CONDITIONS = ("Ready",)


class _BareModel(_Bare):
    KIND = DynamoModel.KIND
    REASON = ModelReason.DECODE_FAILED
    TOO_LARGE = ModelReason.TOO_LARGE
    CONDITIONS = ("Valid",)


class _BareRequest(_Bare):
    KIND = DynamoGraphDeploymentRequest.KIND
    REASON = RequestReason.UNREADABLE
    TOO_LARGE = RequestReason.TOO_LARGE
    CONDITIONS = ("Succeeded",)


_BARE: dict[type[Resource], type[_Bare]] = {
    DynamoGraphDeployment: _BareGraph,
    DynamoComponentDeployment: _BareComponent,
    DynamoGraphDeploymentScalingAdapter: _BareAdapter,
    DynamoModel: _BareModel,
    DynamoGraphDeploymentRequest: _BareRequest,
}


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
    bare = await client.get(_BARE[type_], key)
    if bare.metadata.deletion_timestamp:
        await without_finalizer(bare, writer)
        return DONE
    generation = bare.metadata.generation
    is_large = isinstance(error, TooLarge)
    text, reason = f"Cannot read the object: {error.message}", bare.REASON
    if is_large:
        text, reason = f"Not processed: {error.message}. Running pods keep running.", bare.TOO_LARGE
    text = cut(text, _MESSAGE_LIMIT)
    status: Object = {
        "conditions": [
            Condition(each, "False", reason, text, observed_generation=generation)
            for each in bare.CONDITIONS
        ]
    }
    if isinstance(bare, _BareGraph):
        status["state"] = str(GraphState.FAILED)
    if isinstance(bare, _BareModel):  # the schema wants both in every status
        status["readyEndpoints"] = bare.status.ready_endpoints or 0
        status["totalEndpoints"] = bare.status.total_endpoints or 0
    stop = Stop(status, "TooLarge" if is_large else "DecodeFailed", [text])
    stored = await patch_status(writer, bare, stop.status)
    record_events(recorder, bare, stored, stop=stop)
    return DONE
