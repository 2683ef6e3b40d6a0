"""Write a status: a merge patch of the difference only, and no request when there is none.

A transition time is the moment when a condition's status flipped, so it is taken over from the stored
condition unless the status really changed.
"""

from collections.abc import Collection, Iterable
from typing import TypeVar

import msgspec
import structlog

from kube_runtime.apply.writer import Writer
from kube_runtime.kind import Fields, Object
from kube_runtime.rate_limits import Debounce, WriteActivity, WriteRate
from kube_runtime.times import utc_now
from kube_runtime.types.meta import Condition, Resource

R = TypeVar("R", bound=Resource)
_log = structlog.get_logger()

_WORDS = ("observedGeneration", "state")
"""What programs wait for, besides conditions."""

SETTLE_SECONDS = 1.0
"""How long the first status of a new spec may wait for the last one."""

BUSY_SECONDS = 3.0
"""The same while there is much to do. Of a hundred graphs that are made at once, most are ready so long after
the first of their three services."""


async def patch_status(
    writer: Writer, resource: R, wanted: Fields, *, pace: "StatusRateLimit | None" = None
) -> R:
    """The resource with this status; one request, or none when the stored status says the same.

    `wanted` has plain JSON under the wire names that we own; a name that is left out stays as it is, a name
    that maps to None is removed. `conditions` is a sequence of `Condition` without transition times. `pace`
    takes note of the write once it has succeeded.

    Raises:
        Conflict: the object changed meanwhile; the caller retries at once.
        OperatorError: the patch failed otherwise.
    """
    patch = difference(resource, wanted)
    if not patch:
        return resource
    # The API server ignores a uid in a status patch of a custom resource (measured on v1.36). The version
    # keeps a status that was computed for one spec, or one object, away from the next.
    version = resource.metadata.resource_version
    stored = await writer.merge_patch(
        type(resource),
        resource.key,
        {"metadata": {"resourceVersion": version}, "status": patch},
        subresource="status",
    )
    if pace is not None:
        pace.wrote(resource)
    if what := _news(resource, wanted):
        _log.info("status changed", generation=resource.metadata.generation, **what)
    return stored


def _news(resource: Resource, wanted: Fields) -> Object:
    """What the log says of a new status: its state and the conditions that flipped or have another reason."""
    known = {(each.type, each.status, each.reason) for each in _conditions(resource)}
    flipped = [
        f"{each.type}={each.status} {each.reason}: {each.message}".removesuffix(": ")
        for each in wanted.get("conditions", ())
        if (each.type, each.status, each.reason) not in known
    ]
    before, state = _status(resource).get("state"), wanted.get("state")
    moved = {"state": str(state), "was": before or ""} if state and state != before else {}
    return {**moved, **({"conditions": flipped} if flipped else {})}


class StatusRateLimit:
    """Keeps a status from being written more often than readers can use it.

    *Progress*, counts and texts while nothing is decided, is written once in `seconds`: a rollout changes
    its counts several times a second, and each status is a request that wakes others. What a program waits
    for, a condition that flips or gets another reason, is not held back by that. `passing` are states on the
    way to another one; to go from one of them to the next is progress too.

    *A status of an older generation* is not reliable, as its `observedGeneration` shows.
    So the first status of a new spec waits up to `SETTLE_SECONDS` for the final one: `goal` is the type
    of the condition that is true then, and with it the status is written at once. Most changes of a number
    of replicas are over by then. "" as `goal` means: no such wait.

    *In busy times*, as `write_activity` reports, both wait up to `BUSY_SECONDS`, progress for more of it too.

    `greets`: in other times an object that has no status yet gets one at once, because a user watches it.
    `records` are what later steps are decided by, such as how far a restart is, by their names in the status
    or as types of conditions: a change of one never waits.
    """

    def __init__(
        self,
        seconds: float = 1.0,
        *,
        goal: str = "",
        greets: bool = False,
        records: Collection[str] = (),
        passing: Collection[str] = (),
        activity: WriteActivity | None = None,
    ) -> None:
        self._pace = WriteRate(seconds)
        self._goal = goal
        self._greets = greets
        self._records = frozenset(records)
        self._passing = frozenset(passing)
        self._activity = activity or WriteActivity()
        self._settling = Debounce()
        self._progress = Debounce()

    @property
    def remembered(self) -> int:
        """Of how many objects something is remembered."""
        return self._pace.remembered + self._settling.remembered + self._progress.remembered

    def wait(self, resource: Resource, wanted: Fields) -> float:
        """Seconds to wait before this status is to be written; 0 means at once."""
        uid = resource.metadata.uid
        patch = difference(resource, wanted)
        if not patch:
            self._progress.forget(uid)
            return 0.0
        is_record = self._is_record(resource, wanted, patch)
        if is_record or not self._may_settle(resource, wanted):
            self._settling.forget(uid)
        elif left := self._settling.wait(uid, self._patience):
            return left
        if not (is_record or self._decides(resource, wanted)):
            gathering = self._progress.wait(uid, BUSY_SECONDS) if self._activity.is_high else 0.0
            if left := max(self._pace.wait(uid), gathering):
                return left
        return 0.0

    def wrote(self, resource: Resource) -> None:
        """Take note that a status of that object was written."""
        uid = resource.metadata.uid
        self._progress.forget(uid)
        self._pace.note(uid)

    @property
    def _patience(self) -> float:
        return BUSY_SECONDS if self._activity.is_high else SETTLE_SECONDS

    def _decides(self, resource: Resource, wanted: Fields) -> bool:
        """Whether a status says more than that counts or texts have moved."""
        stored = _status(resource)
        moved = {name: (stored.get(name), wanted[name]) for name in _WORDS if name in wanted}
        for name, (old, new) in moved.items():
            if old != new and not (name == "state" and {old, new} <= self._passing):
                return True
        known = {_reported(each) for each in _conditions(resource)}
        return any(_reported(each) not in known for each in wanted.get("conditions", ()))

    def _is_record(self, resource: Resource, wanted: Fields, patch: Object) -> bool:
        if self._records & patch.keys():
            return True
        stored = {(each.type, each.status) for each in _conditions(resource)}
        said = {(each.type, each.status) for each in wanted.get("conditions", ())}
        return any(type_ in self._records for type_, _ in said - stored)

    def _may_settle(self, resource: Resource, wanted: Fields) -> bool:
        """Whether the stored status is of an older spec, and this one is not final for the newest."""
        observed = _status(resource).get("observedGeneration", 0)
        if not self._goal or observed == resource.metadata.generation:
            return False
        if self._greets and not observed and not self._activity.is_high:
            return False
        return not any(
            (each.type, each.status) == (self._goal, "True") for each in wanted["conditions"]
        )


def _reported(condition: Condition) -> tuple[str, str, str, int | None]:
    return condition.type, condition.status, condition.reason, condition.observed_generation


def difference(resource: Resource, wanted: Fields) -> Object:
    """The merge patch from the stored status to the wanted one, as far as it is ours."""
    stored, status = _status(resource), _as_json(wanted)
    if "conditions" in wanted:
        old = _conditions(resource)
        stored["conditions"] = [_complete(each) for each in old]
        status["conditions"] = with_transition_times(wanted["conditions"], old, now=utc_now())
    return merge_patch({name: stored.get(name) for name in status}, status)


def _conditions(resource: Resource) -> tuple[Condition, ...]:
    """The stored conditions."""
    return msgspec.convert(_status(resource).get("conditions", ()), tuple[Condition, ...])


def _as_json(wanted: Fields) -> Object:
    """What a status is on the wire; a tuple, for one, is a list there."""
    plain = {name: each for name, each in wanted.items() if name != "conditions"}
    status: Object = msgspec.json.decode(msgspec.json.encode(plain))
    return status


def _status(resource: Resource) -> Object:
    """The stored status as plain JSON."""
    status: Object = msgspec.json.decode(msgspec.json.encode(getattr(resource, "status", None)))
    return status or {}


def with_transition_times(
    wanted: Iterable[Condition], stored: Iterable[Condition], *, now: str
) -> list[Object]:
    """The wanted conditions as JSON, then the stored ones of other types.

    `lastTransitionTime` is the stored one unless the status differs; then it is `now` (RFC 3339).
    """
    rest = {each.type: each for each in stored}
    conditions = []
    for each in wanted:
        old = rest.pop(each.type, None)
        kept = old.last_transition_time if old and old.status == each.status else None
        conditions.append(msgspec.structs.replace(each, last_transition_time=kept or now))
    return [_complete(each) for each in (*conditions, *rest.values())]


def merge_patch(stored: Fields, wanted: Fields) -> Object:
    """The JSON merge patch (RFC 7386) that turns `stored` into `wanted`; empty when they are equal."""
    patch: Object = {}
    for name in {**stored, **wanted}:
        old, new = stored.get(name), wanted.get(name)
        if isinstance(old, dict) and isinstance(new, dict):
            if inner := merge_patch(old, new):
                patch[name] = inner
        elif not _same(old, new):
            patch[name] = new
    return patch


def _same(old: object, new: object) -> bool:
    return old == new or (old is None and new in ({}, [])) or (new is None and old in ({}, []))


def _complete(condition: Condition) -> Object:
    """All required fields of a condition, empty ones included."""
    body: Object = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.last_transition_time is not None:
        body["lastTransitionTime"] = condition.last_transition_time
    if condition.observed_generation is not None:
        body["observedGeneration"] = condition.observed_generation
    return body
