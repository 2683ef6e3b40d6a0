"""Report an object of ours whose newest state does not fit its type, on that object.

The object cannot be decoded. So it is read again as a bare object with its metadata and its conditions
only, and nothing is done for it: its last readable spec is no longer what its owner wants.
"""

from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.plan.model import ModelReason
from dynamo_graphs.plan.request import RequestReason
from dynamo_graphs.status.graph import GraphState
from dynamo_graphs.status.reasons import ComponentReason, GraphReason, ScalingReason
from dynamo_graphs.status.stop import Stop
from dynamo_operator.reconcile.finalizer import without_finalizer
from dynamo_operator.reconcile.report import Reporter
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import DecodeError, TooLarge
from kube_runtime.kind import Key, Kind
from kube_runtime.text import cut
from kube_runtime.types.meta import Condition, Resource, Status

_MESSAGE_LIMIT = 1024


class _BareStatus(Status):
    """The part of a status that is the same for all kinds."""

    state: str = ""
    observed_generation: int = 0
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
    type_: type[Resource], key: Key, error: DecodeError, client: Client, reporter: Reporter
) -> Result:
    """Say on the object why it cannot be read, or is not: it is too large. Its next change wakes us again.

    Raises:
        NotFound: it is gone.
        OperatorError: not even its metadata and conditions could be read, or nothing could be written.
    """
    bare = await client.get(_bare_type(type_.KIND), key)
    if bare.metadata.deletion_timestamp:
        await without_finalizer(bare, reporter.writer)
        return DONE
    generation, words = bare.metadata.generation, WORDS[type_]
    if isinstance(error, TooLarge):
        text = f"Not processed: {error.message}. Running pods keep running."
        reason, event = words.too_large, "TooLarge"
    else:
        text = f"Cannot read the object: {error.message}"
        reason, event = words.unreadable, "DecodeFailed"
    text = cut(text, _MESSAGE_LIMIT)
    status = bare.status.with_conditions(
        Condition(condition, "False", reason, text, observed_generation=generation)
        for condition in words.conditions
    )
    if type_ is DynamoGraphDeployment:
        status = replace(status, state=str(GraphState.FAILED))
    if type_ is DynamoModel:  # the schema wants both in every status
        status = replace(
            status,
            ready_endpoints=status.ready_endpoints or 0,
            total_endpoints=status.total_endpoints or 0,
        )
    await reporter.stopped(bare, Stop(status, event, [text]))
    return DONE
