"""The watch of one kind: its state machine, its events, its selector."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias

import msgspec
import structlog

from kube_runtime.client.client import Client, Page, WatchLine, error_of_watch
from kube_runtime.errors import DecodeError, Expired, Invalid, NotFound, OperatorError, Throttled, Unreachable
from kube_runtime.times import loop_time
from kube_runtime.types.meta import Key, Metadata, R, Selector
from kube_runtime.wire import UNLIMITED, ObjectIdentity, identity


class Started(msgspec.Struct, frozen=True):
    """A list begins, and ends with `Synced`. An earlier unfinished list is void."""


class Present(msgspec.Struct, Generic[R], frozen=True):
    """An object of the list. If it comes several times, the last state counts."""

    resource: R


class Synced(msgspec.Struct, frozen=True):
    """The list is complete: objects that are not in it do not exist."""


class Changed(msgspec.Struct, Generic[R], frozen=True):
    """An object was created or changed."""

    resource: R


class Removed(msgspec.Struct, frozen=True):
    """An object is gone, or no longer selected; within a list, it is no longer part of it."""

    key: Key
    uid: str


class Broken(msgspec.Struct, frozen=True):
    """An object does not fit its type. The others are not affected."""

    error: DecodeError


Event: TypeAlias = Started | Present[R] | Synced | Changed[R] | Removed | Broken


END_OF_LIST = b'"k8s.io/initial-events-end"'
"""Annotation of the bookmark that ends a streamed list (KEP-3157); the API server alone writes bookmarks."""

_log = structlog.get_logger(__name__)

SERVER_SECONDS = (240, 300)
"""Bounds of the random time after which the server ends a stream, so that not all end at once."""

MARGIN_SECONDS = 30.0
"""How much longer a stream may stay open before it is closed."""

SILENCE_SECONDS = 150.0
"""Seconds without an event after which a watch is closed as half-open; bookmarks come once a minute."""

SHORT_SECONDS = 1.0
"""A stream without an event that ends sooner counts as failed."""

LIST_SILENCE_SECONDS = 20.0
"""Longest pause in a streamed list; the API server may queue a request for 15 s."""

LIST_SECONDS = 60.0
"""Timeout of a streamed list, which may get changes without end."""


class Empty(msgspec.Struct, frozen=True):
    """The next step starts a list, as a stream unless `in_pages`."""

    in_pages: bool = False


class Paging(msgspec.Struct, Generic[R], frozen=True):
    """A list in pages. The next step takes a page."""

    pages: AsyncGenerator[Page[R], None]
    resource_version: str = ""


class Listed(msgspec.Struct, frozen=True):
    """Everything up to a version is known. The next step opens a stream from there."""

    resource_version: str


@dataclass(slots=True)
class Watching:
    """A stream is open. The next step takes an event. Times are on the event loop's clock."""

    resource_version: str
    lines: AsyncGenerator[WatchLine, None]
    opened_at: float
    expires_at: float
    received_at: float
    events_received: int = 0

    @property
    def is_version_unknown(self) -> bool:
        """Whether not even a bookmark came for so long that the API server cannot know the version.

        That happens after a restore from a backup, when it counts from an older version (measured on v1.36).
        """
        silence = SILENCE_SECONDS - SHORT_SECONDS  # timers may be early
        return not self.events_received and loop_time() - self.opened_at > silence


class Streaming(msgspec.Struct, frozen=True):
    """A list as the first events of a stream. The next step takes an event."""

    stream: Watching


class _Unfinished(Unreachable):
    """A stream was accepted but did not complete its list."""


#             ┌─stream─▶ Streaming ─its end mark─────────────────────┐
#     Empty ──┤                                                      ▼
#       ▲     └─pages──▶ Paging ─last page─▶ Listed ─open─▶ Watching ─end, cut, silence─▶ Listed
#       │                                      │ 410            │ 410
#       └──────────────────────────────────────┴────────────────┘
#
# A list comes as the first events of the stream that continues with its changes: one request, and
# neither side holds a whole page. An API server that does not support this, or did not finish such
# a stream, is asked for pages. Source: `docs/decisions/0024-streamed-lists.md`.
#
# No change is lost: whatever ends a stream, the next one starts at the last version that was
# received. Only a compacted history (410) causes a relist. `Started` and `Synced` enclose a list,
# so that missing objects can be treated as removed.
class Watch(Generic[R]):
    """Lists and watches one kind.

    `step` neither sleeps nor retries: it raises, and the next step continues from `state`. `decoded` is asked
    for each object whether its state was decoded before.
    """

    def __init__(
        self,
        client: Client,
        type_: type[R],
        selector: Selector,
        *,
        most_bytes: int = UNLIMITED,
        decoded: Callable[[msgspec.Raw], R | None] = lambda _: None,
    ) -> None:
        self._most_bytes = most_bytes
        self._decoded = decoded
        self._client = client
        self._type = type_
        self._selector = selector
        self._can_stream = True
        self._was_silent = False
        """Whether the last stream was closed without an event."""
        self.state: Empty | Paging[R] | Streaming | Listed | Watching = Empty()

    async def step(self) -> Sequence[Event[R]]:
        """Take the next page or event, and return the events for the store.

        Raises:
            Expired: the history is gone; the next step starts a list.
            OperatorError: another failure; the next step retries.
        """
        match self.state:
            case Empty(in_pages):
                return self._start(in_pages=in_pages or not self._can_stream)
            case Paging() as paging:
                return await self._take_page(paging)
            case Streaming(stream):
                return await self._take_from_list(stream)
            case Listed(resource_version):
                self.state = self._open(resource_version)
                return ()
            case Watching() as watching:
                return await self._take(watching)

    async def aclose(self) -> None:
        """Close the list or stream; the next step starts a list."""
        state, self.state = self.state, Empty()
        match state:
            case Paging(pages):
                await pages.aclose()
            case Watching(lines=lines) | Streaming(Watching(lines=lines)):
                await lines.aclose()
            case _:
                pass

    def _start(self, *, in_pages: bool) -> Sequence[Event[R]]:
        # Without a version: the list must be the newest. The API server's cache ("0") may be behind what this
        # process, or its predecessor, has seen or written.
        if in_pages:
            pages = self._client.pages(self._type, most_bytes=self._most_bytes, **self._selector.query())
            self.state = Paging(pages)
        else:
            self.state = Streaming(self._open(None))
        return (Started(),)

    async def _take_page(self, paging: Paging[R]) -> Sequence[Event[R]]:
        try:
            page = await anext(paging.pages, None)
        except OperatorError:
            self.state = Empty()
            raise
        if page is None:
            self.state = Listed(paging.resource_version)
            return (Synced(),)
        self.state = Paging(paging.pages, page.resource_version)
        return (*map(Present, page.items), *map(Broken, page.broken))

    async def _take_from_list(self, stream: Watching) -> Sequence[Event[R]]:
        try:
            return self._listed(stream, await _list_line(stream))
        except Invalid as error:
            await stream.lines.aclose()
            self._can_stream = False  # an older API server; if something else is wrong, pages fail as well
            _log.info("lists are not streamed", kind=str(self._type.KIND), answer=str(error))
            self.state = Empty()
            return ()
        except OperatorError as error:
            await stream.lines.aclose()
            # An API server that accepts a stream without completing its list would delay each relist.
            self._can_stream = not isinstance(error, _Unfinished)
            # Pages cost an overloaded server more.
            self.state = Empty(in_pages=not isinstance(error, Throttled))
            raise

    def _listed(self, stream: Watching, line: WatchLine) -> Sequence[Event[R]]:
        bookmark = identity(line.object) if line.type == "BOOKMARK" else None
        if bookmark is not None and END_OF_LIST in bytes(bookmark.annotations):
            if not _advance(stream, bookmark):
                raise _Unfinished("a streamed list ended without a version")
            now = loop_time()
            stream.events_received, stream.opened_at, stream.received_at = 0, now, now
            self.state = stream
            return (Synced(),)
        # Changes during the list come in between.
        events = self._read(stream, line)
        return [Present(event.resource) if isinstance(event, Changed) else event for event in events]

    def _open(self, resource_version: str | None) -> Watching:
        seconds = random.randint(*SERVER_SECONDS)  # noqa: S311  # spreads load, guards nothing
        lines = self._client.watch(
            self._type, resource_version=resource_version, timeout_seconds=seconds, **self._selector.query()
        )
        now = loop_time()
        return Watching(resource_version or "", lines, now, now + seconds + MARGIN_SECONDS, now)

    async def _take(self, watching: Watching) -> Sequence[Event[R]]:
        try:
            line = await _next_line(watching)
            if line is not None:
                return self._read(watching, line)
        except OperatorError as error:
            await watching.lines.aclose()
            # One silent stream may have been half-open; after two the server does not know the version.
            is_version_unknown = watching.is_version_unknown and self._was_silent
            self._was_silent = watching.is_version_unknown
            gone = isinstance(error, Expired | NotFound) or is_version_unknown
            self.state = Empty() if gone else Listed(watching.resource_version)
            raise
        self.state = Empty() if watching.is_version_unknown else Listed(watching.resource_version)
        return ()

    def _read(self, watching: Watching, line: WatchLine) -> Sequence[Event[R]]:
        watching.events_received += 1
        self._was_silent = False
        watching.received_at = loop_time()
        match line.type:
            case "ERROR":
                raise error_of_watch(line.object, self._type.KIND)
            case "ADDED" | "MODIFIED":
                return (self._change(watching, line),)
            case "DELETED":
                gone = identity(line.object)
                if not _advance(watching, gone):
                    return (Broken(DecodeError(self._type.KIND, None, "a removal cannot be decoded")),)
                return (Removed(Key(gone.namespace, gone.name), gone.uid),)
            case "BOOKMARK":
                _advance(watching, identity(line.object))
                return ()

    def _change(self, watching: Watching, line: WatchLine) -> Event[R]:
        try:
            decoded = self._decoded(line.object)
            resource = self._client.decode(self._type, line.object, self._most_bytes, decoded)
        except DecodeError as error:
            _advance(watching, identity(line.object))
            return Broken(error)
        _advance(watching, resource.metadata)
        return Changed(resource)


def _advance(watching: Watching, metadata: ObjectIdentity | Metadata) -> bool:
    watching.resource_version = metadata.resource_version or watching.resource_version
    return bool(metadata.resource_version)


async def _list_line(stream: Watching) -> WatchLine:
    now = loop_time()
    until = min(now + LIST_SILENCE_SECONDS, stream.opened_at + LIST_SECONDS)
    try:
        async with asyncio.timeout_at(until):
            line = await anext(stream.lines, None)
    except TimeoutError as error:
        raise _Unfinished("a streamed list did not come to its end in time") from error
    except Unreachable as error:
        if stream.events_received:
            raise _Unfinished(f"a streamed list broke off: {error}") from error
        raise
    if line is None:
        raise _Unfinished("a streamed list ended before it was complete")
    return line


async def _next_line(watching: Watching) -> WatchLine | None:
    until = min(watching.expires_at, watching.received_at + SILENCE_SECONDS)
    try:
        async with asyncio.timeout_at(until):
            line = await anext(watching.lines, None)
    except TimeoutError as error:
        raise Unreachable("a watch was silent for too long and was cut") from error
    age = loop_time() - watching.opened_at
    if line is None and not watching.events_received and age < SHORT_SECONDS:
        raise Unreachable("a watch was closed as soon as it was open")
    return line
