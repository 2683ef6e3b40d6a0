"""The checks before every reconcile: does the object exist, can it be read, is it paused?

An object whose newest state does not fit its type cannot be decoded. It is read again with only its
metadata and conditions, and the reason is written to its status. Nothing is applied: its last readable spec
is outdated.
"""

from functools import cache as cached
from typing import NamedTuple, TypeVar

from msgspec.structs import replace
from structlog.contextvars import bind_contextvars

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.plan.model import ModelReason
from dynamo_graphs.plan.request import RequestReason
from dynamo_graphs.status.conditions import paused_status
from dynamo_graphs.status.graph import GraphState
from dynamo_graphs.status.reasons import ComponentReason, GraphReason, ScalingReason
from dynamo_graphs.status.stop import Stop
from dynamo_operator.reconcile.patches import without_finalizer
from dynamo_operator.reconcile.report import Reporter
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.cache.cache import Cache
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import DecodeError, TooLarge
from kube_runtime.kind import Key, Kind
from kube_runtime.text import cut
from kube_runtime.types.meta import Condition, Resource, Status

T = TypeVar("T", bound=Resource)

_MESSAGE_LIMIT = 1024


async def load_for_reconcile(
    type_: type[T], key: Key, cache: Cache, reporter: Reporter
) -> T | Result:
    """Return the object to reconcile, or a result if there is nothing to do now.

    There is nothing to do if it is deleted or being deleted (the API server deletes what it owns), paused, or
    unreadable; the last two are written to its status.

    Raises:
        OperatorError: a write failed.
    """
    if unreadable := cache.broken(type_, key):
        return await report_unreadable(type_, key, unreadable, reporter)
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
    """Write to the status that the object is paused. Any change of it wakes the controller."""
    stored = await patch_status(reporter.writer, resource, paused_status(resource))
    if stored is not resource:
        message = f"{labels.PAUSED} is true: the operator writes nothing"
        reporter.recorder.event(resource, reason="Paused", message=message)
    return Result(written=stored)


class _BareStatus(Status):
    """The part of a status that is the same for all kinds."""

    state: str = ""
    observed_generation: int = 0
    ready_endpoints: int | None = None
    total_endpoints: int | None = None


class _Bare(Resource):
    """An object of any kind without its spec."""

    READ_LEVELS = 4  # a condition, or an owner reference

    status: _BareStatus = _BareStatus()


class FailureReasons(NamedTuple):
    """The conditions of a kind, and their reasons for an object that cannot be read or is too large.

    `rejected` is the reason if a write fails on which everything else depends, such as one of its metadata.
    """

    conditions: tuple[str, ...]
    unreadable: str
    too_large: str
    rejected: str


FAILURE_REASONS: dict[type[Resource], FailureReasons] = {
    DynamoGraphDeployment: FailureReasons(
        ("Ready",), GraphReason.DECODE_FAILED, GraphReason.TOO_LARGE, GraphReason.REJECTED
    ),
    DynamoComponentDeployment: FailureReasons(
        ("Available", "DynamoComponentReady"),
        ComponentReason.DECODE_FAILED,
        ComponentReason.TOO_LARGE,
        ComponentReason.REJECTED,
    ),
    DynamoGraphDeploymentScalingAdapter: FailureReasons(
        ("Ready",), ScalingReason.DECODE_FAILED, ScalingReason.TOO_LARGE, ScalingReason.REJECTED
    ),
    DynamoModel: FailureReasons(
        ("Valid",), ModelReason.DECODE_FAILED, ModelReason.TOO_LARGE, ModelReason.REJECTED
    ),
    DynamoGraphDeploymentRequest: FailureReasons(
        ("Succeeded",), RequestReason.UNREADABLE, RequestReason.TOO_LARGE, RequestReason.REJECTED
    ),
}
"""By kind. A process with the kinds of the older generation adds theirs."""


@cached
def _bare_type(kind: Kind) -> type[_Bare]:
    """A type for objects of the kind without their specs."""
    return type(f"Bare{kind.name}", (_Bare,), {"KIND": kind})


async def report_unreadable(
    type_: type[Resource], key: Key, error: DecodeError, reporter: Reporter
) -> Result:
    """Write to the status that the object cannot be read or is too large. Its next change requeues it.

    Raises:
        NotFound: it was deleted.
        OperatorError: not even metadata and conditions could be read, or the write failed.
    """
    bare = await reporter.client.get(_bare_type(type_.KIND), key)
    if bare.metadata.deletion_timestamp:
        await without_finalizer(bare, reporter.writer)
        return DONE
    generation, reasons = bare.metadata.generation, FAILURE_REASONS[type_]
    if isinstance(error, TooLarge):
        text = f"Not processed: {error.message}. Running pods keep running."
        reason, event = reasons.too_large, "TooLarge"
    else:
        text = f"Cannot read the object: {error.message}"
        reason, event = reasons.unreadable, "DecodeFailed"
    text = cut(text, _MESSAGE_LIMIT)
    status = bare.status.with_conditions(
        Condition(condition, "False", reason, text, observed_generation=generation)
        for condition in reasons.conditions
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
