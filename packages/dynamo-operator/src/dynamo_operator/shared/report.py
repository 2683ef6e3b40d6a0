"""What every controller does around its decision: preflight, other writes, refusals, report and Events.

A controller reads the cluster from the cache. What it keeps in memory besides (running calls, the time of
the last status, specs without problems) only saves work: after a restart it reaches the same result.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache as cached
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import structs
from structlog.contextvars import bind_contextvars

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment, RestartStatus, RollingUpdateStatus
from dynamo_operator.labels import FINALIZER
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.plan import ModelReason
from dynamo_operator.names import is_paused
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, RequestReason
from dynamo_operator.shared.conditions import (
    CONFLICT_RETRY_SECONDS,
    REJECTED_RETRY_SECONDS,
    ComponentReason,
    GraphReason,
    GraphState,
    ScalingReason,
    StatusEvent,
    Stop,
    paused_status,
)
from dynamo_operator.shared.problems import Problem
from dynamo_operator.shared.transforms import metadata_only
from dynamo_operator.shared.writes import Delete, Patch, Write
from kube_runtime.apply.result import Applied, Blocked, Obstacle, Verb, rejected
from kube_runtime.apply.result import Change as Written
from kube_runtime.apply.status import CONTEST_SECONDS, Recent, StatusRateLimit, patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import MESSAGE_LIMIT, Recorder, log_decision
from kube_runtime.errors import (
    ApiError,
    DecodeError,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    ServerFailure,
    TooLarge,
)
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import (
    Condition,
    Key,
    Kind,
    Object,
    R,
    Resource,
    Status,
    condition,
    cut,
    fingerprint_of,
    fitted,
    status_of,
)

T = TypeVar("T")
S = TypeVar("S", bound=Status)

_CHECKED_IN_CACHE = frozenset(
    (Obstacle.NAME_CONFLICT, Obstacle.PREDECESSOR, Obstacle.NOT_SERVED, Obstacle.FORBIDDEN)
)
"""Obstacles whose next check costs no request."""

_LOGGED_ONLY = frozenset((ControllerRevision.KIND.name,))
"""Kinds whose writes are logged without an Event: the revisions are the history themselves."""


# The status before its Events: a reader of an Event finds the status that belongs to it.
@dataclass(frozen=True, slots=True)
class Reporter:
    """Ends the reconciles of one kind.

    `rolled_out` gets a graph with a managed rollout before and after a write of its status.
    """

    writer: Writer
    recorder: Recorder
    limit: StatusRateLimit
    client: Client
    rolled_out: Callable[[DynamoGraphDeployment, DynamoGraphDeployment], None] = lambda _, __: None

    def applying(self, owner: Resource) -> Applied:
        """The result of the writes for an object, to be filled; each change is an Event at once."""

        def told(change: Written) -> None:
            reason, message, cause = change.reason, change.message, change.cause
            if change.verb is Verb.SCALE or change.kind in _LOGGED_ONLY:
                log_decision(reason, message, cause=cause)
            else:
                self.recorder.event(owner, reason=reason, message=message, cause=cause)

        return Applied(told)

    async def stopped(self, resource: Resource, stop: Stop) -> Result:
        """End a reconcile that applies nothing. A change of the spec, or of what is missing, requeues it.

        Raises:
            OperatorError: the status could not be written.
        """
        stored = await patch_status(self.writer, resource, stop.status)
        record_events(self.recorder, resource, stored, stop=stop)
        return Result(written=stored)

    async def applied(
        self, resource: Resource, status: Status, applied: Applied, *seconds: float | None
    ) -> Result:
        """End a reconcile after its apply; requeue after the shortest of `seconds`, if not before.

        Raises:
            OperatorError: the status could not be written.
        """
        for text in applied.contested:
            self.recorder.event(resource, reason="Contested", message=text, warning=True)
        failure = next(iter(applied.failures), None)
        new = {(change.kind, change.name) for change in applied.changes if change.verb is Verb.CREATE}
        created = tuple(live for live in applied.objects if (live.KIND.name, live.metadata.name) in new)
        if wait := self.limit.wait(resource, status):
            return earliest(Result(wait, created=created, failure=failure), *seconds)
        stored = await patch_status(self.writer, resource, status, limit=self.limit)
        graphs = [it for it in (resource, stored) if isinstance(it, DynamoGraphDeployment)]
        if any(graph.status.rolling_update for graph in graphs):
            self.rolled_out(*graphs)
        record_events(self.recorder, resource, stored, applied.blocked)
        again: float | None = None
        if applied.met:
            is_cheap = all(blocked.obstacle in _CHECKED_IN_CACHE for blocked in applied.met)
            again = CONFLICT_RETRY_SECONDS if is_cheap else REJECTED_RETRY_SECONDS
        elif applied.contested:
            again = CONTEST_SECONDS
        return earliest(Result(again, stored, created, failure), *seconds)


def earliest(result: Result, *seconds: float | None) -> Result:
    """Requeue after the shortest of these times; None and 0 do not count."""
    times = [time for time in (result.requeue_after_seconds, *seconds) if time]
    return replace(result, requeue_after_seconds=min(times, default=None))


def record_events(
    recorder: Recorder,
    before: Resource,
    after: Resource,
    blocked_objects: Iterable[Blocked] = (),
    stop: Stop | None = None,
) -> None:
    """Queue the Events about a status that was just written; `after` is the object with it.

    A refusal causes an Event only if it changed the status, so a settled object emits none.
    """
    if after is before:
        return
    if isinstance(before, DynamoGraphDeployment) and isinstance(after, DynamoGraphDeployment):
        for event in status_events(before, after):
            recorder.event(before, reason=event.reason, message=event.message, warning=event.is_warning)
    for blocked in blocked_objects:
        if not blocked.passes_by_itself:
            recorder.event(before, reason=blocked.obstacle, message=blocked.message, warning=True)
    if stop is not None:
        text = fitted(stop.texts, MESSAGE_LIMIT)
        recorder.event(before, reason=stop.reason, message=text, warning=True)


OWNED_BYTES = 2 * 1024 * 1024
"""Of the children of one kind and owner, as JSON. The largest ones are about as large as their specs."""

_MARKERS = (labels.MANAGED_BY, labels.APP_MANAGED_BY)


# Any user may write a label, an owner reference or a name. So an owner counts only if it exists,
# and what is kept for one owner is bounded: a user who may create ConfigMaps cannot fill the memory
# with them.
class Owners:
    """The existing objects of our kinds, by uid, from their informers."""

    def __init__(self, informers: Sequence[Informer[Any]]) -> None:
        self.informers = informers
        self._namespaces: dict[str, str] = {}
        for informer in informers:
            informer.store.subscribe(self._on_change)

    def _on_change(self, change: Change[Any]) -> None:
        if change.old is not None:
            self._namespaces.pop(change.old.metadata.uid, None)
        if change.new is not None:
            self._namespaces[change.new.metadata.uid] = change.new.metadata.namespace

    def owner_of(self, resource: Resource) -> str:
        """The uid of an existing owner in the namespace of an object; "" if none exists.

        Objects with our label and without an owner, such as shared RoleBindings, count for their namespace.
        """
        metadata = resource.metadata
        for owner in metadata.owner_references:
            if self._namespaces.get(owner.uid) == metadata.namespace:
                return owner.uid
        is_marked = any(metadata.labels.get(marker) == labels.MANAGER for marker in _MARKERS)
        return namespace_of(resource) if is_marked else ""


def namespace_of(resource: Resource) -> str:
    """The namespace as owner, for kinds whose objects have none."""
    return f"namespace {resource.metadata.namespace}"


class BoundedContent:
    """A transform of one kind: keeps the content of objects that have an owner, up to `most_bytes` per owner.

    `owner_of` returns the owner of an object, "" for none. 0 as `most_bytes` is for kinds with many objects
    per owner, which few users may create.
    """

    def __init__(self, owner_of: Callable[[Resource], str], most_bytes: int = OWNED_BYTES) -> None:
        self._owner_of = owner_of
        self._most_bytes = most_bytes
        self._sizes: dict[str, dict[Key, int]] = {}
        self._counted: dict[Key, str] = {}

    def __call__(self, resource: R) -> R:
        """The object, or its metadata."""
        self._forget(resource.key)
        owner = self._owner_of(resource)
        if not owner:
            return metadata_only(resource)
        if not self._most_bytes:
            return resource
        size = len(msgspec.json.encode(resource))
        sizes = self._sizes.setdefault(owner, {})
        if sum(sizes.values()) + size > self._most_bytes:
            return metadata_only(resource)
        sizes[resource.key] = size
        self._counted[resource.key] = owner
        return resource

    def on_change(self, change: Change[Any]) -> None:
        """Stop counting an object that is gone."""
        if change.new is None and change.old is not None:
            self._forget(change.old.key)

    def _forget(self, key: Key) -> None:
        owner = self._counted.pop(key, "")
        sizes = self._sizes.get(owner, {})
        sizes.pop(key, None)
        if not sizes:
            self._sizes.pop(owner, None)


def children(type_: type[R], owners: Owners, **selected: Any) -> Informer[R]:
    """The informer of a kind of children."""
    informer = per_owner(type_, owners.owner_of, **selected)
    informer.after = owners.informers
    return informer


def per_owner(type_: type[R], owner_of: Callable[[Resource], str], **selected: Any) -> Informer[R]:
    """The informer of a kind whose content is bounded per owner."""
    content = BoundedContent(owner_of)
    informer = Informer(type_, transform=content, **selected)
    informer.store.subscribe(content.on_change)
    return informer


LARGE_TEXT = 64 * 1024
"""Characters of YAML that are parsed in the event loop: about 0.1 s."""


async def parsed(characters: int, parse: Callable[..., T], *args: object) -> T:
    """Return `parse(*args)`, which reads so many characters: in a thread if they are many."""
    if characters <= LARGE_TEXT:
        return parse(*args)
    return await asyncio.to_thread(parse, *args)


REMEMBERED = 16_384
"""Objects of one controller in a `ValidationCache`."""


class ValidationCache:
    """Remembers which objects have no problems: most reconciles follow a child's status, not a new spec.

    Validation costs a fifth of such a reconcile (`make bench ARGS="--only micro"`). `find` may depend on
    labels, annotations, owner references and spec, on fields that never change, such as the name, and on
    settings.
    """

    def __init__(self) -> None:
        self._valid: Recent[bytes] = Recent(REMEMBERED)

    def problems_by(self, resource: R, find: Callable[[R], tuple[Problem, ...]]) -> tuple[Problem, ...]:
        """Return the problems that `find` reports; it is not called if the same content had none."""
        uid, fingerprint = resource.metadata.uid, fingerprint_of(resource)
        if self._valid.get(uid) == fingerprint:
            return ()
        problems = find(resource)
        if not problems:
            self._valid.put(uid, fingerprint)
        return problems

    def forget(self, uid: str) -> None:
        """Forget a deleted object."""
        self._valid.forget(uid)


_MESSAGE_LIMIT = 1024


# An object whose newest state does not fit its type cannot be decoded. It is read again with only
# its metadata and conditions, and the reason is written to its status. Nothing is applied: its last
# readable spec is outdated.
async def load_for_reconcile(
    type_: type[R], key: Key, cache: Cache, reporter: Reporter, *, with_finalizer: bool = False
) -> R | Result:
    """Return the object to reconcile, or a result if there is nothing to do now.

    It has no finalizer of an earlier operator any more, or `with_finalizer` still the one that it had.

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
    return resource if with_finalizer else await without_finalizer(resource, reporter.writer)


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
    status = _failed(type_, bare.status, generation, reason, text)
    if type_ is DynamoModel:  # the schema wants both in every status
        status = structs.replace(
            status,
            ready_endpoints=status.ready_endpoints or 0,
            total_endpoints=status.total_endpoints or 0,
        )
    await reporter.stopped(bare, Stop(status, event, [text]))
    return DONE


# The applier returns what the API server refuses, and the status of its reconcile has the cause.
# Other writes, such as a record in an annotation or a finalizer, are what the rest of a reconcile
# depends on: it ends there.
async def report_refusal(
    type_: type[Resource],
    cache: Cache,
    reporter: Reporter,
    key: Key,
    error: ApiError | RecursionError,
) -> Result:
    """Write to the status, and in an Event, which write ended the reconcile of an object, or its nesting.

    Raises:
        Conflict: the object changed meanwhile; the caller retries at once.
        ApiError: the error itself, if nothing can be written about the object.
    """
    if isinstance(error, RecursionError):
        unreadable = DecodeError(type_.KIND, key, "it is nested too deeply")
        return await report_unreadable(type_, key, unreadable, reporter)
    resource = cache.get(type_, key)
    if resource is None or error.kind is None or error.key is None:
        raise error
    if isinstance(error, ServerFailure):  # the next attempt may not meet it
        raise error
    text = cut(rejected(error.kind.name, error.key.name, error).message, _MESSAGE_LIMIT)
    reason, generation = FAILURE_REASONS[type_].rejected, resource.metadata.generation
    status = _failed(type_, status_of(resource), generation, reason, text)
    try:
        stored = await patch_status(reporter.writer, resource, status)
    except (Forbidden, Invalid):  # the Event and the log remain
        stored = None
    except (NotFound, ServerFailure):
        raise error from None
    if stored is not resource:
        reporter.recorder.event(resource, reason=Obstacle.REJECTED, message=text, warning=True)
    return Result(REJECTED_RETRY_SECONDS, stored, failure=error)


def _failed(type_: type[Resource], status: S, generation: int, reason: str, text: str) -> S:
    """The status of an object of that type for which the operator can do nothing."""
    status = status.with_conditions(
        Condition(condition, "False", reason, text, observed_generation=generation)
        for condition in FAILURE_REASONS[type_].conditions
    )
    is_graph = type_ is DynamoGraphDeployment
    return structs.replace(status, state=str(GraphState.FAILED)) if is_graph else status


_SUSPENSIONS = {"True": "Suspended", "False": "Resumed"}
"""Events of the condition `Suspended`, by its new status."""


def status_events(before: DynamoGraphDeployment, after: DynamoGraphDeployment) -> Iterator[StatusEvent]:
    """The Events between two statuses of a graph."""
    if after.status.restart is not None:
        yield from _restart(before.status.restart, after.status.restart)
    if after.status.rolling_update is not None:
        yield from _rolling_update(before.status.rolling_update, after.status.rolling_update)
    old = {entry.type: entry for entry in before.status.conditions}
    for new in after.status.conditions:
        was = old.get(new.type, Condition(new.type, ""))
        is_overdue = new.reason == GraphReason.DEADLINE_EXCEEDED != was.reason
        if new.type == "Suspended" and new.status != was.status and new.status in _SUSPENSIONS:
            yield StatusEvent(_SUSPENSIONS[new.status], new.message)
        elif new.type == "Progressing" and is_overdue:
            yield StatusEvent("ProgressDeadlineExceeded", new.message, is_warning=True)


def _restart(old: RestartStatus | None, new: RestartStatus) -> Iterator[StatusEvent]:
    before = (old.observed_id, old.phase) if old else (None, None)
    if before == (new.observed_id, new.phase):
        return
    if new.phase == "Restarting":
        yield StatusEvent("RestartStarted", f'Restart "{new.observed_id}" started')
    elif new.phase == "Superseded":
        text = f'Restart "{new.observed_id}" is superseded by the rolling update of the workers'
        yield StatusEvent("RestartSuperseded", text, is_warning=True)
    elif new.phase == "Completed" and before[1] == "Restarting":
        yield StatusEvent("RestartCompleted", f'Restart "{new.observed_id}" completed')


def _rolling_update(old: RollingUpdateStatus | None, new: RollingUpdateStatus) -> Iterator[StatusEvent]:
    if old and (old.phase, old.to_hash) == (new.phase, new.to_hash):
        return
    old_workers = f"workers {new.from_hash or 'without a revision'}"
    change = f"{old_workers} with {new.to_hash or 'those without a revision'}"
    if new.phase == "InProgress":
        yield StatusEvent("RollingUpdateStarted", f"Replacing {change}")
    elif new.phase == "Completed" and old is not None:
        yield StatusEvent("RollingUpdateCompleted", f"Replaced {change}")


def model_status_events(before: DynamoModel, after: DynamoModel) -> Iterator[StatusEvent]:
    """The Events between two statuses of a model."""
    yield from _validity(before, after)
    old, new = (_ready(model) for model in (before, after))
    base = after.spec.base_model_name if after.spec else ""
    total, ready = after.status.total_endpoints or 0, after.status.ready_endpoints or 0
    failing = [
        sum(one.failures > 0 and not one.fallback_covered for one in model.status.endpoints)
        for model in (before, after)
    ]
    if failing[1] and not failing[0]:
        cause = new.message.partition("; ")[2]
        text = f"Some endpoints failed to load LoRA: {failing[1]} task(s) failed"
        text = f"{text}; {cause}" if cause else text
        yield StatusEvent("PartialEndpointFailure", text, is_warning=True)
    has_lost = old.reason == ModelReason.ALL_READY and ready < (before.status.ready_endpoints or 0)
    if new.reason in (ModelReason.NOT_READY, ModelReason.NONE_READY):
        if has_lost or (failing[1] and not failing[0]):  # one more pod is not a loss
            text = f"Only {ready} of {total} endpoints ready for base model {base}"
            yield StatusEvent("NotReady", text, is_warning=True)
    elif new.reason != old.reason:
        yield from _readiness(new, base, total)


def _readiness(new: Condition, base: str, total: int) -> Iterator[StatusEvent]:
    match new.reason:
        case ModelReason.ALL_READY:
            text = f"All {total} endpoints ready for base model {base}"
            yield StatusEvent("EndpointsReady", text)
        case ModelReason.DISCOVERED:
            yield StatusEvent("EndpointsDiscovered", f"Discovered {total} endpoints for base model {base}")
        case ModelReason.NO_ENDPOINTS:
            yield StatusEvent("NoEndpointsFound", new.message, is_warning=True)
        case ModelReason.CONFLICT | ModelReason.NOT_CALLED:
            yield StatusEvent(new.reason, new.message, is_warning=True)
        case _:
            pass


def _validity(before: DynamoModel, after: DynamoModel) -> Iterator[StatusEvent]:
    old, new = (condition(model.status.conditions, "Valid") for model in (before, after))
    if new is None or new.status == "True" or (old is not None and old.message == new.message):
        return
    yield StatusEvent(new.reason, new.message.removeprefix("Validation failed: "), is_warning=True)


def _ready(model: DynamoModel) -> Condition:
    return condition(model.status.conditions, "EndpointsReady") or Condition("EndpointsReady", "")


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
            applied.stopped(change.kind, name, error)
        else:
            applied.record(change)
