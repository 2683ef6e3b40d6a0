"""Report a refused write that ended a reconcile.

The applier returns what the API server refuses, and the status of its reconcile has the cause. Other writes,
such as a record in an annotation or a finalizer, are what the rest of a reconcile depends on: it ends there.
"""

from msgspec.structs import replace

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.graph import GraphState
from dynamo_operator.reconcile.preflight import FAILURE_REASONS
from dynamo_operator.reconcile.report import REJECTED_RETRY_SECONDS, Reporter
from kube_runtime.apply.result import Obstacle, rejected
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.cache.cache import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.errors import ApiError, Forbidden, Invalid, NotFound, ServerFailure
from kube_runtime.kind import Key
from kube_runtime.text import cut
from kube_runtime.types.meta import Condition, Resource, status_of

_MESSAGE_LIMIT = 1024


async def report_refusal(
    type_: type[Resource],
    cache: Cache,
    reporter: Reporter,
    key: Key,
    error: ApiError,
) -> Result:
    """Write to the status, and in an Event, which write ended the reconcile of an object.

    Raises:
        Conflict: the object changed meanwhile; the caller retries at once.
        ApiError: the error itself, if nothing can be written about the object.
    """
    resource = cache.get(type_, key)
    if resource is None or error.kind is None or error.key is None:
        raise error
    if isinstance(error, ServerFailure):  # the next attempt may not meet it
        raise error
    text = cut(rejected(error.kind.name, error.key.name, error).message, _MESSAGE_LIMIT)
    reasons, generation = FAILURE_REASONS[type_], resource.metadata.generation
    status = status_of(resource).with_conditions(
        Condition(condition, "False", reasons.rejected, text, observed_generation=generation)
        for condition in reasons.conditions
    )
    if type_ is DynamoGraphDeployment:
        status = replace(status, state=str(GraphState.FAILED))
    try:
        stored = await patch_status(reporter.writer, resource, status)
    except (Forbidden, Invalid):  # the Event and the log remain
        stored = None
    except (NotFound, ServerFailure):
        raise error from None
    if stored is not resource:
        reporter.recorder.event(resource, reason=Obstacle.REJECTED, message=text, warning=True)
    return Result(REJECTED_RETRY_SECONDS, stored, failure=error)
