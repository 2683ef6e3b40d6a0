"""The watch of one kind as a state machine, moved by `Watch.step`.

            ┌─stream─▶ Streaming ─its end mark─────────────────────┐
    Empty ──┤                                                      ▼
      ▲     └─pages──▶ Paging ─last page─▶ Listed ─open─▶ Watching ─end, cut, silence─▶ Listed
      │                                      │ 410            │ 410
      └──────────────────────────────────────┴────────────────┘

A list comes as the first lines of the stream that continues with its changes, which is one request and lets
neither side hold a whole page. An API server without support for that is asked for pages, and so is one
that did not finish such a stream. Source: `docs/decisions/0024-streamed-lists.md`.

Nothing is lost: whatever ends a stream, the next one starts at the last version that was received. Only
a compacted history (410) starts a new list, and a list is bracketed by `Started` and `Synced`, so that its
reader can treat what is missing as removed.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Generic

import msgspec
import structlog

from kube_runtime.client.api_errors import error_of_watch
from kube_runtime.client.requests import Client, Page, WatchLine
from kube_runtime.clock import loop_time
from kube_runtime.decode import UNLIMITED, UNREADABLE, ObjectIdentity, decode, identity
from kube_runtime.errors import (
    DecodeError,
    Expired,
    Invalid,
    NotFound,
    OperatorError,
    Throttled,
    Unreachable,
)
from kube_runtime.kind import Key
from kube_runtime.types.meta import Metadata, R, Struct
from kube_runtime.watch.events import Broken, Changed, Event, Present, Removed, Started, Synced
from kube_runtime.watch.selector import Selector

END_OF_LIST = "k8s.io/initial-events-end"
"""The annotation of the bookmark that ends a streamed list (KEP-3157)."""


class _Marks(Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Bookmark(Struct, frozen=True):
    metadata: _Marks = _Marks()


_BOOKMARK = msgspec.json.Decoder(_Bookmark)


def ends_list(line: WatchLine) -> bool:
    """Whether the line is the bookmark that ends a streamed list."""
    if line.type != "BOOKMARK":
        return False
    try:
        marks = _BOOKMARK.decode(line.object).metadata.annotations
    except UNREADABLE:
        return False
    return END_OF_LIST in marks


_log = structlog.get_logger()

SERVER_SECONDS = (240, 300)
"""Bounds of the time after which the server ends a stream; random, so that not all end at once."""

MARGIN_SECONDS = 30.0
"""How much longer than that a stream may stay open before it is cut."""

SILENCE_SECONDS = 150.0
"""Seconds without a line after which a watch is cut as half-open; bookmarks come about once a minute."""

SHORT_SECONDS = 1.0
"""A stream that ends sooner than this, without a line, is a failure and not an end."""

LIST_SILENCE_SECONDS = 20.0
"""Longest pause of a streamed list; the API server may keep a request in its queue for 15 s."""

LIST_SECONDS = 60.0
"""After so long a streamed list has no end: changes may keep it from being silent."""


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is known. The next step starts a list, as a stream unless it has to be `in_pages`."""

    in_pages: bool = False


@dataclass(frozen=True, slots=True)
class Paging(Generic[R]):
    """A list is running. The next step takes a page."""

    pages: AsyncGenerator[Page[R], None]
    resource_version: str = ""


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything up to this version is known. The next step opens a stream from there."""

    resource_version: str


@dataclass(slots=True)
class Watching:
    """A stream is open. The next step takes a line. Times are the event loop's."""

    resource_version: str
    lines: AsyncGenerator[WatchLine, None]
    opened_at: float
    cut_at: float
    heard_at: float
    lines_heard: int = 0

    @property
    def is_deaf(self) -> bool:
        """Whether not even a bookmark came for so long that the API server cannot know our version.

        It was restored from a backup then, and counts from an older one (measured, v1.36).
        """
        age = loop_time() - self.opened_at
        return not self.lines_heard and age > SILENCE_SECONDS - SHORT_SECONDS  # timers may be early


@dataclass(frozen=True, slots=True)
class Streaming:
    """A list comes as the first lines of this stream. The next step takes a line."""

    stream: Watching


class _Unfinished(Unreachable):
    """A stream that was accepted did not bring its list to an end."""


class Watch(Generic[R]):
    """List and watch of one kind.

    `step` never sleeps and never retries: it raises, and the next step continues from `state`.
    """

    def __init__(
        self,
        client: Client,
        type_: type[R],
        selection: Selector,
        *,
        most_bytes: int = UNLIMITED,
    ) -> None:
        self._most_bytes = most_bytes
        self._client = client
        self._type = type_
        self._selection = selection
        self._can_stream = True
        self._heard_nothing = False
        """Whether the last stream was cut before it had brought a line."""
        self.state: Empty | Paging[R] | Streaming | Listed | Watching = Empty()

    async def step(self) -> Sequence[Event[R]]:
        """The events of the next answer, page or line.

        Raises:
            Expired: the history is gone; the next step starts a list.
            OperatorError: anything else; the next step retries from where this one stood.
        """
        match self.state:
            case Empty(in_pages):
                return self._start(in_pages=in_pages or not self._can_stream)
            case Paging() as paging:
                return await self._page(paging)
            case Streaming(stream):
                return await self._part(stream)
            case Listed(resource_version):
                self.state = self._open(resource_version)
                return ()
            case Watching() as watching:
                return await self._line(watching)

    async def aclose(self) -> None:
        """Give up the open list or stream; the next step starts a list."""
        state, self.state = self.state, Empty()
        match state:
            case Paging(pages):
                await pages.aclose()
            case Watching(lines=lines) | Streaming(Watching(lines=lines)):
                await lines.aclose()
            case _:
                pass

    def _start(self, *, in_pages: bool) -> Sequence[Event[R]]:
        # No version: the list must be the newest there is. The server's cache ("0") may lie
        # behind what we have seen or written, and time must not run backwards, not even by a restart.
        if in_pages:
            pages = self._client.pages(
                self._type, most_bytes=self._most_bytes, **self._selection.query()
            )
            self.state = Paging(pages)
        else:
            self.state = Streaming(self._open(None))
        return (Started(),)

    async def _page(self, paging: Paging[R]) -> Sequence[Event[R]]:
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

    async def _part(self, stream: Watching) -> Sequence[Event[R]]:
        """The next line of a streamed list, and what it says."""
        try:
            return self._listed(stream, await _list_line(stream))
        except Invalid as error:
            await stream.lines.aclose()
            self._can_stream = False  # an older API server; pages say it if anything else is wrong
            _log.info("lists are not streamed", kind=str(self._type.KIND), answer=str(error))
            self.state = Empty()
            return ()
        except OperatorError as error:
            await stream.lines.aclose()
            # A server that accepts such a stream and does not end its list would delay each one to come.
            self._can_stream = not isinstance(error, _Unfinished)
            # Pages cost the server more, which is nothing to ask for when it has too much to do already.
            self.state = Empty(in_pages=not isinstance(error, Throttled))
            raise

    def _listed(self, stream: Watching, line: WatchLine) -> Sequence[Event[R]]:
        if ends_list(line):
            if not _advance(stream, identity(line.object)):
                raise _Unfinished("a streamed list ended without a version")
            now = loop_time()
            stream.lines_heard, stream.opened_at, stream.heard_at = 0, now, now
            self.state = stream
            return (Synced(),)
        # What changes while the list is sent comes in between, as changes.
        events = self._read(stream, line)
        return [
            Present(event.resource) if isinstance(event, Changed) else event for event in events
        ]

    def _open(self, resource_version: str | None) -> Watching:
        seconds = random.randint(*SERVER_SECONDS)  # noqa: S311  # spreads load, guards nothing
        lines = self._client.watch(
            self._type,
            resource_version=resource_version,
            timeout_seconds=seconds,
            **self._selection.query(),
        )
        now = loop_time()
        return Watching(resource_version or "", lines, now, now + seconds + MARGIN_SECONDS, now)

    async def _line(self, watching: Watching) -> Sequence[Event[R]]:
        try:
            line = await _next_line(watching)
            if line is not None:
                return self._read(watching, line)
        except OperatorError as error:
            await watching.lines.aclose()
            # One stream without a line may be half-open since it began; two of them are a deaf server.
            is_deaf = watching.is_deaf and self._heard_nothing
            self._heard_nothing = watching.is_deaf
            gone = isinstance(error, Expired | NotFound) or is_deaf
            self.state = Empty() if gone else Listed(watching.resource_version)
            raise
        self.state = Empty() if watching.is_deaf else Listed(watching.resource_version)
        return ()

    def _read(self, watching: Watching, line: WatchLine) -> Sequence[Event[R]]:
        watching.lines_heard += 1
        self._heard_nothing = False
        watching.heard_at = loop_time()
        match line.type:
            case "ERROR":
                raise error_of_watch(line.object, self._type.KIND)
            case "ADDED" | "MODIFIED":
                return (self._change(watching, line),)
            case "DELETED":
                gone = identity(line.object)
                if not _advance(watching, gone):
                    return (Broken(DecodeError(self._type.KIND, None, "a removal cannot be read")),)
                return (Removed(Key(gone.namespace, gone.name), gone.uid),)
            case "BOOKMARK":
                _advance(watching, identity(line.object))
                return ()

    def _change(self, watching: Watching, line: WatchLine) -> Event[R]:
        try:
            resource = decode(self._type, line.object, self._most_bytes)
        except DecodeError as error:
            _advance(watching, identity(line.object))
            return Broken(error)
        _advance(watching, resource.metadata)
        return Changed(resource)


def _advance(watching: Watching, metadata: ObjectIdentity | Metadata) -> bool:
    """Take over the version of a line. Returns whether it has one."""
    watching.resource_version = metadata.resource_version or watching.resource_version
    return bool(metadata.resource_version)


async def _list_line(stream: Watching) -> WatchLine:
    """The next line of a streamed list.

    Raises:
        _Unfinished: there will be no more of it.
    """
    now = loop_time()
    until = min(now + LIST_SILENCE_SECONDS, stream.opened_at + LIST_SECONDS)
    try:
        async with asyncio.timeout_at(until):
            line = await anext(stream.lines, None)
    except TimeoutError as error:
        raise _Unfinished("a streamed list did not come to its end in time") from error
    except Unreachable as error:
        if stream.lines_heard:
            raise _Unfinished(f"a streamed list broke off: {error}") from error
        raise
    if line is None:
        raise _Unfinished("a streamed list ended before it was complete")
    return line


async def _next_line(watching: Watching) -> WatchLine | None:
    """The next line, or None at the end of the stream.

    Raises:
        Unreachable: it is silent for too long, or was closed as soon as it was open.
    """
    until = min(watching.cut_at, watching.heard_at + SILENCE_SECONDS)
    try:
        async with asyncio.timeout_at(until):
            line = await anext(watching.lines, None)
    except TimeoutError as error:
        raise Unreachable("a watch was silent for too long and was cut") from error
    age = loop_time() - watching.opened_at
    if line is None and not watching.lines_heard and age < SHORT_SECONDS:
        raise Unreachable("a watch was closed as soon as it was open")
    return line
