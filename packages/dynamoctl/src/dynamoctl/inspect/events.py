"""`dynamoctl events`: the Events about a graph and the objects that it owns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from dynamoctl.cluster.target import GRAPHS, members, target_of
from dynamoctl.options import Where
from dynamoctl.screen import Styled, short_age, show, show_json, table, warn
from kube_runtime.commandline import ExitCode
from kube_runtime.kind import Fields, Object
from kube_runtime.types.kinds import Event
from kube_runtime.types.meta import Resource

_HEAD = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE")


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An Event, of the core or the events.k8s.io API. `last_seen` is RFC 3339, UTC, or ""."""

    last_seen: str
    type: str
    reason: str
    about: str
    count: int
    message: str


async def print_events(name: str, where: Where, output: str, *, only_warnings: bool) -> ExitCode:
    """Print the Events, the newest last.

    Raises: CycloptsError; OperatorError, or a group of them.
    """
    async with target_of(name, where, GRAPHS) as at:
        graph = await at.get()
        dependents = await members(at.reading.client, graph.key)
        listed = await at.reading.all_raw(Event.KIND, at.key.namespace)
    for note in dependents.unread:
        warn(note)
    uids = owned_uids(graph, dependents.by_owner)
    shown = events_about(listed, uids, only_warnings=only_warnings)
    if output == "json":
        show_json([_json(event) for event in shown])
    elif shown:
        now = datetime.now(UTC)
        show(
            table(
                _HEAD,
                (
                    (
                        short_age(event.last_seen or None, now),
                        event.type,
                        event.reason,
                        Styled(event.about, "bold"),
                        str(event.count),
                        event.message,
                    )
                    for event in shown
                ),
            )
        )
    else:
        which = "Warning Events" if only_warnings else "Events"
        warn(f"no {which} about {graph.key} in the last hour or so: Kubernetes deletes old ones")
    return ExitCode.OK


def events_about(
    events: Iterable[Object], uids: frozenset[str], *, only_warnings: bool = False
) -> list[ShownEvent]:
    """The Events about objects with these uids, the oldest first."""
    matching = [
        _shown_event(event)
        for event in events
        if (event.get("involvedObject") or {}).get("uid") in uids
        and (not only_warnings or event.get("type") == "Warning")
    ]
    return sorted(matching, key=lambda it: it.last_seen)


def owned_uids(root: Resource, by_owner: Mapping[str, Sequence[Resource]]) -> frozenset[str]:
    """The uids of an object and of everything below it."""
    return frozenset(_below(root.metadata.uid, by_owner, set()))


def _below(uid: str, by_owner: Mapping[str, Sequence[Resource]], seen: set[str]) -> Iterator[str]:
    if uid in seen:  # users may write owner references, also in a circle
        return
    seen.add(uid)
    yield uid
    for child in by_owner.get(uid, ()):
        yield from _below(child.metadata.uid, by_owner, seen)


def _shown_event(event: Fields) -> ShownEvent:
    series = event.get("series") or {}
    times = (
        series.get("lastObservedTime"),
        event.get("lastTimestamp"),
        event.get("eventTime"),
        event["metadata"].get("creationTimestamp"),
    )
    about = event["involvedObject"]
    return ShownEvent(
        last_seen=str(next(filter(None, times), "")),
        type=str(event.get("type", "")),
        reason=str(event.get("reason", "")),
        about=f"{about.get('kind', '')}/{about.get('name', '')}",
        count=int(series.get("count") or event.get("count") or 1),
        message=str(event.get("message", "")),
    )


def _json(event: ShownEvent) -> Object:
    return {
        "lastSeen": event.last_seen or None,
        "type": event.type,
        "reason": event.reason,
        "object": event.about,
        "count": event.count,
        "message": event.message,
    }
