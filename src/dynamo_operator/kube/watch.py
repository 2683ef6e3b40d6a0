"""The watch of one kind as a state machine, moved by `Watch.step`.

    Empty ─list─▶ Paging ─last page─▶ Listed ─open─▶ Watching ─end, cut, silence─▶ Listed
      ▲                                 │ 410            │ 410
      └─────────────────────────────────┴────────────────┘

The hard thing is to lose nothing: whatever ends a stream, the next one starts at the last version
that was heard. Only history that is gone (410) starts a new list, and a list is bracketed by
`Started` and `Synced`, so that its reader can treat what is missing as removed.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias

import msgspec

from dynamo_operator.kube.answers import error_of_watch
from dynamo_operator.kube.client import Client, Page, WatchLine
from dynamo_operator.kube.decode import UNREADABLE, decode
from dynamo_operator.kube.errors import (
    DecodeError,
    Expired,
    NotFound,
    OperatorError,
    Unreachable,
)
from dynamo_operator.kube.kind import Key
from dynamo_operator.kube.selection import Selection
from dynamo_operator.kube.types.meta import R, Struct

SERVER_SECONDS = (240, 300)
"""Bounds of the time after which the server ends a stream; random, so that not all end at once."""

MARGIN_SECONDS = 30.0
"""How much longer than that a stream may go on before it counts as silent and is cut."""

SHORT_SECONDS = 1.0
"""A stream that ends sooner than this, without a line, is a failure and not an end."""

DEAF_SECONDS = 180.0
"""A stream that ends later than this, without a line, had no bookmark either: three are missing."""


@dataclass(frozen=True, slots=True)
class Started:
    """A list begins; everything up to `Synced` is part of it."""


@dataclass(frozen=True, slots=True)
class Present(Generic[R]):
    """An object of the list."""

    resource: R


@dataclass(frozen=True, slots=True)
class Synced:
    """The list is complete: what it did not bring does not exist."""


@dataclass(frozen=True, slots=True)
class Changed(Generic[R]):
    """An object was created or changed."""

    resource: R


@dataclass(frozen=True, slots=True)
class Removed:
    """The object of this key and uid is gone, or no longer selected."""

    key: Key
    uid: str


@dataclass(frozen=True, slots=True)
class Broken:
    """An object exists and does not fit its type. The others go on."""

    error: DecodeError


Event: TypeAlias = Started | Present[R] | Synced | Changed[R] | Removed | Broken


@dataclass(frozen=True, slots=True)
class Empty:
    """Nothing is known. The next step starts a list."""


@dataclass(frozen=True, slots=True)
class Paging(Generic[R]):
    """A list is under way. The next step takes a page."""

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
    lines_heard: int = 0


class Watch(Generic[R]):
    """One kind, from an empty hand to a stream of its changes, for ever.

    `step` never sleeps and never retries: it raises, and the next step goes on from `state`.
    """

    def __init__(
        self,
        client: Client,
        type_: type[R],
        selection: Selection,
        *,
        jitter: random.Random | None = None,
    ) -> None:
        self._client = client
        self._type = type_
        self._selection = selection
        self._jitter = jitter or random.Random()  # noqa: S311  # spreads load, guards nothing
        self.state: Empty | Paging[R] | Listed | Watching = Empty()

    async def step(self) -> Sequence[Event[R]]:
        """What the next answer, page or line says.

        Raises:
            Expired: the history is gone; the next step starts a list.
            OperatorError: anything else; the next step tries again from where this one stood.
        """
        match self.state:
            case Empty():
                return self._start()
            case Paging() as paging:
                return await self._page(paging)
            case Listed(resource_version):
                return self._open(resource_version)
            case Watching() as watching:
                return await self._line(watching)

    async def aclose(self) -> None:
        """Give up the open list or stream; the next step starts a list."""
        state, self.state = self.state, Empty()
        match state:
            case Paging(pages):
                await pages.aclose()
            case Watching(lines=lines):
                await lines.aclose()
            case _:
                pass

    def _start(self) -> Sequence[Event[R]]:
        # No `resourceVersion`: the list must be the newest there is. The server's cache ("0") may lie
        # behind what we have seen or written, and time must not run backwards, not even by a restart.
        pages = self._client.pages(self._type, **self._selection.query())
        self.state = Paging(pages)
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

    def _open(self, resource_version: str) -> Sequence[Event[R]]:
        seconds = self._jitter.randint(*SERVER_SECONDS)
        lines = self._client.watch(
            self._type,
            resource_version=resource_version,
            timeout_seconds=seconds,
            **self._selection.query(),
        )
        now = asyncio.get_running_loop().time()
        self.state = Watching(resource_version, lines, now, now + seconds + MARGIN_SECONDS)
        return ()

    async def _line(self, watching: Watching) -> Sequence[Event[R]]:
        try:
            line = await _next_line(watching)
            if line is not None:
                watching.lines_heard += 1
                return self._read(watching, line)
        except OperatorError as error:
            await watching.lines.aclose()
            gone = isinstance(error, Expired | NotFound)
            self.state = Empty() if gone else Listed(watching.resource_version)
            raise
        # An API server sends a bookmark about every minute. One that says nothing at all for longer does
        # not know our version: it was restored from a backup and counts from an older one (measured, v1.36).
        age = asyncio.get_running_loop().time() - watching.opened_at
        is_deaf = not watching.lines_heard and age > DEAF_SECONDS
        self.state = Empty() if is_deaf else Listed(watching.resource_version)
        return ()

    def _read(self, watching: Watching, line: WatchLine) -> Sequence[Event[R]]:
        if line.type == "ERROR":
            raise error_of_watch(line.object, self._type.KIND)
        try:
            identity = _FRAME.decode(line.object).metadata
        except UNREADABLE as error:
            return (Broken(DecodeError(self._type.KIND, None, str(error))),)
        watching.resource_version = identity.resource_version or watching.resource_version
        match line.type:
            case "ADDED" | "MODIFIED":
                try:
                    return (Changed(decode(self._type, line.object)),)
                except DecodeError as error:
                    return (Broken(error),)
            case "DELETED":
                return (Removed(Key(identity.namespace, identity.name), identity.uid),)
            case _:
                return ()  # a bookmark: a version and no more


class _Identity(Struct, frozen=True):
    """What every object has, whatever else may be wrong with it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Frame(Struct, frozen=True):
    metadata: _Identity = _Identity()


_FRAME = msgspec.json.Decoder(_Frame)


async def _next_line(watching: Watching) -> WatchLine | None:
    """The next line, or None at the end of the stream."""
    try:
        async with asyncio.timeout_at(watching.cut_at):
            line = await anext(watching.lines, None)
    except TimeoutError as error:
        raise Unreachable("a watch was silent for too long and was cut") from error
    age = asyncio.get_running_loop().time() - watching.opened_at
    if line is None and not watching.lines_heard and age < SHORT_SECONDS:
        raise Unreachable("a watch was closed as soon as it was open")
    return line
