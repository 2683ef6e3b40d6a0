"""The result of an apply: the objects as they are now, the changes, and what is blocked or contested.

A refusal of one object must not stop the others, nor get lost: it is the cause that the status names. So all
code that writes several objects goes through one loop, `apply_each`.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from operator import attrgetter
from typing import TypeAlias

import msgspec

from kube_runtime.errors import ApiError, NotFound, Refused, ServerFailure
from kube_runtime.types.meta import Object, R, Resource, key_of

_TURN_SECONDS = 0.01

FAILING_KINDS = 2
"""One kind may fail alone, because of a webhook that is down. With two, nothing more is written: a reconcile
must end before its timeout, although each failure may take the timeout of a webhook."""


class Verb(StrEnum):
    """What was done to an object; with its kind, the reason of an Event.

    SCALE: only `spec.replicas` changed. There is no Event for it: autoscalers do it all day, and the status
    and the workload's own controller report it.
    """

    CREATE = "Create"
    UPDATE = "Update"
    SCALE = "Scale"
    DELETE = "Delete"


class Cause(StrEnum):
    """Why an object was written, for the log."""

    ABSENT = "it does not exist"
    SPEC = "the spec of its owner changed"
    INPUTS = "the settings or other objects that it depends on changed"
    DRIFT = "another client changed it"
    OWNERS = "its owners changed"
    UNWANTED = "its owner needs it no longer"
    PROVIDER = "the graph has another workload provider"
    ROLLOUT = "the next step of the rollout"


@dataclass(frozen=True, slots=True)
class Change:
    """A write that the API server accepted. `cause` is the reason for the log, usually a `Cause`."""

    verb: Verb
    kind: str
    name: str
    cause: str = field(default="", compare=False)

    @property
    def reason(self) -> str:
        """The Event reason, such as `CreateDeployment`."""
        return f"{self.verb}{self.kind}"

    @property
    def message(self) -> str:
        """One sentence for the Event."""
        return f"{self.verb.removesuffix('e')}ed {self.kind} {self.name}"


class Obstacle(StrEnum):
    """Why an object could not be brought to its desired state."""

    NAME_CONFLICT = "name_conflict"
    REJECTED = "rejected_by_api_server"
    NOT_SERVED = "api_not_served"
    FORBIDDEN = "api_forbidden"
    PREDECESSOR = "predecessor_is_going"
    PREREQUISITE = "prerequisite_is_blocked"
    CONTESTED = "contested"
    NOT_ALLOWED = "exposure_not_allowed"


class Blocked(msgspec.Struct, frozen=True):
    """An object that could not be written, and why. `is_as_desired`: only our records on it are reverted."""

    obstacle: Obstacle
    kind: str
    name: str
    message: str
    is_as_desired: bool = False

    @property
    def passes_by_itself(self) -> bool:
        """Whether waiting is enough: for another object, another client or the end of another obstacle."""
        return self.obstacle in (Obstacle.PREDECESSOR, Obstacle.PREREQUISITE, Obstacle.CONTESTED)


class Obstructed(Exception):
    """Ends the attempt at one object; caught by `apply_each`."""

    def __init__(self, blocked: Blocked) -> None:
        super().__init__(blocked.message)
        self.blocked = blocked


@dataclass(slots=True)
class Applied:
    """The result of the writes of a reconcile so far. A status is computed from it.

    `objects` are as the API server holds them. `on_change` is called after each change, because a reconcile
    that fails halfway does not return them. `obstructions` are what could not be written, `contested` the
    objects that another client keeps reverting. `failures` are those of the API server, which
    the next attempt may not have, `failing` the kinds of the objects.
    """

    on_change: Callable[[Change], None] = lambda _: None
    objects: list[Resource] = field(default_factory=list[Resource])
    changes: list[Change] = field(default_factory=list[Change])
    obstructions: list[Blocked] = field(default_factory=list[Blocked])
    contested: list[Blocked] = field(default_factory=list[Blocked])
    failures: list[ServerFailure] = field(default_factory=list[ServerFailure])
    failing: dict[type[Resource], Blocked] = field(default_factory=dict[type[Resource], Blocked])

    @property
    def blocked(self) -> tuple[Blocked, ...]:
        """The causes, in the order in which they were met, then what waits for others."""
        contested = (blocked for blocked in self.contested if not blocked.is_as_desired)
        return tuple(sorted((*self.obstructions, *contested), key=attrgetter("passes_by_itself")))

    def get(self, type_: type[R], name: str) -> R | None:
        """The applied object of that kind and name, if it exists."""
        for live in self.objects:
            if isinstance(live, type_) and live.metadata.name == name:
                return live
        return None

    def by_name(self, type_: type[R]) -> dict[str, R]:
        """The applied objects of that kind."""
        return {live.metadata.name: live for live in self.objects if isinstance(live, type_)}

    def record(self, change: Change) -> None:
        """Add a change, and call `on_change`."""
        self.changes.append(change)
        self.on_change(change)

    def refused(self, kind: str, name: str, error: Refused | ServerFailure) -> None:
        """Add a write that the API server refused, or failed at."""
        self.obstructions.append(rejected(kind, name, error))
        if isinstance(error, ServerFailure):
            self.failures.append(error)


@dataclass(slots=True)
class Attempt:
    """One desired object while it is being applied."""

    desired: Object
    type_: type[Resource]
    present: Resource | None = None
    verb: Verb | None = None
    cause: str = ""
    contested: Blocked | None = None
    counted_as: str = ""
    digest: str = ""

    def is_stopped_by(self, error: Refused | ServerFailure) -> bool:
        """Whether the error is about this object, rather than about its owner, or its deletion just now."""
        name = self.desired["metadata"]["name"]
        if (error.kind, error.key) != (self.type_.KIND, key_of(self.desired)):
            return False
        is_gone = self.present is not None and (error.details or {}).get("name") == name
        return not (is_gone and isinstance(error, NotFound))


ApplyStep: TypeAlias = Callable[[Attempt], Awaitable[None]]
"""Applies one object. Raises Obstructed, Refused or ServerFailure for that object alone."""


async def apply_each(
    objects: Iterable[Object], types: Iterable[type[Resource]], step: ApplyStep, applied: Applied
) -> None:
    """Run `step` for each desired object, in order. A refusal of one does not stop the others.

    Raises:
        OperatorError: any error except the refusal of one object, or a failure that may be of its kind alone.
    """
    by_kind = {(type_.KIND.api_version, type_.KIND.name): type_ for type_ in types}
    turn = time.monotonic()
    for desired in objects:
        if time.monotonic() - turn > _TURN_SECONDS:  # a step that writes nothing awaits nothing
            await asyncio.sleep(0)
            turn = time.monotonic()
        kind, name = desired["kind"], desired["metadata"]["name"]
        attempt = Attempt(desired, by_kind[desired["apiVersion"], kind])
        failing = applied.failing
        if len(failing) >= FAILING_KINDS or attempt.type_ in failing:
            first = next(iter(failing.values()))
            applied.obstructions.append(waits_for(desired, failing.get(attempt.type_, first)))
            continue
        try:
            await step(attempt)
        except Obstructed as obstruction:
            applied.obstructions.append(obstruction.blocked)
        except (Refused, ServerFailure) as error:
            if not attempt.is_stopped_by(error):
                raise
            missing = (error.details or {}).get("name") if isinstance(error, NotFound) else None
            cause = next((earlier for earlier in applied.obstructions if earlier.name == missing), None)
            if cause is not None:
                applied.obstructions.append(waits_for(desired, cause))
            else:
                applied.refused(kind, name, error)
            if isinstance(error, ServerFailure):
                failing[attempt.type_] = applied.obstructions[-1]
        else:
            if attempt.verb is not None:
                turn = time.monotonic()  # the write awaited its answer
                applied.record(Change(attempt.verb, kind, name, attempt.cause))
            if attempt.contested is not None:
                applied.contested.append(attempt.contested)
        if attempt.present is not None:
            applied.objects.append(attempt.present)


def controls(owner: Resource, live: Resource) -> bool:
    """Whether `owner` controls an object, by uid."""
    controller = live.metadata.controller
    return controller is not None and controller.uid == owner.metadata.uid


def name_conflict(live: Resource, owner: Resource) -> Blocked:
    """The name is taken by another object, or by one of an earlier owner that is being deleted."""
    kind, name, controller = live.KIND.name, live.metadata.name, live.metadata.controller
    if controller and controller.names_kind(owner.KIND) and controller.name == owner.metadata.name:
        text = f"{kind} {name} belongs to an earlier {controller.kind} {controller.name} and is being deleted"
        return Blocked(Obstacle.PREDECESSOR, kind, name, text)
    holder = (
        f"is controlled by {controller.kind} {controller.name} (uid {controller.uid})"
        if controller
        else "has no controller"
    )
    text = f"{kind} {name} exists and {holder}; the operator leaves it alone: rename or delete it"
    return Blocked(Obstacle.NAME_CONFLICT, kind, name, text)


def replacement_pending(live: Resource) -> Blocked:
    """A binding to another role is being deleted; its removal requeues its owners."""
    kind, name = live.KIND.name, live.metadata.name
    text = f"{kind} {name} binds another role and is being deleted"
    return Blocked(Obstacle.PREDECESSOR, kind, name, text)


def manager_conflict(live: Resource, *, is_as_desired: bool = False) -> Blocked:
    """Another client keeps reverting the object."""
    kind, name = live.KIND.name, live.metadata.name
    text = (
        f"another client reverts {kind} {name} each time the operator applies it; the operator leaves it "
        "alone for a minute (see its managedFields)"
    )
    return Blocked(Obstacle.CONTESTED, kind, name, text, is_as_desired)


def rejected(kind: str, name: str, error: ApiError) -> Blocked:
    """The API server refuses an object, or fails at it; the message is its own."""
    return Blocked(Obstacle.REJECTED, kind, name, f"{kind} {name}: {error.message}")


def waits_for(desired: Object, cause: Blocked) -> Blocked:
    """The object cannot be written before another one that is blocked."""
    kind, name = desired["kind"], desired["metadata"]["name"]
    text = f"{kind} {name} waits for {cause.kind} {cause.name}"
    return Blocked(Obstacle.PREREQUISITE, kind, name, text)


def not_served(desired: Object) -> Blocked:
    """The API server does not serve the kind; the owner is requeued once it does."""
    kind, name = desired["kind"], desired["metadata"]["name"]
    return Blocked(Obstacle.NOT_SERVED, kind, name, f"{kind} {name}: {desired['apiVersion']} is not served")


def forbidden(desired: Object, granted_by: str) -> Blocked:
    """The kind is installed, but may not be read; the owner is requeued once it may."""
    kind, name = desired["kind"], desired["metadata"]["name"]
    text = (
        f"{kind} {name}: {desired['apiVersion']} is installed, but the operator may not read it"
        f"{granted_by and f'; {granted_by} grants it'}"
    )
    return Blocked(Obstacle.FORBIDDEN, kind, name, text)
