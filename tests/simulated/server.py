"""A simulated API server: a `Transport` over `Storage`, with the faults of a real one on demand.

A watch stream that is cut loses what it has not sent, and a silent one keeps its connection but sends
nothing, not even its end.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec

from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import Unreachable
from kube_runtime.types.meta import Key, Object, Resource
from simulated.storage import Entry, Refused, Storage

BOOKMARK_SECONDS = 60.0
NO_ANSWER = 0


@dataclass(frozen=True)
class Target:
    """The object, collection or subresource that a URL path names."""

    collection: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @classmethod
    def of(cls, path: str) -> "Target":
        parts = path.strip("/").split("/")
        root, rest = (parts[:2], parts[2:]) if parts[0] == "api" else (parts[:3], parts[3:])
        namespace = ""
        if len(rest) > 2 and rest[0] == "namespaces":
            namespace, rest = rest[1], rest[2:]
        plural, name, subresource = (*rest, "", "", "")[:3]
        return cls("/".join(("", *root, plural)), namespace, name, subresource)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def is_version(self) -> bool:
        """Whether it is a version of an API, whose kinds a client asks for: none is listed."""
        return self.collection.endswith("/")


@dataclass
class Fault:
    """A failure of the next matching requests. The code `NO_ANSWER` cuts the connection.

    With `after`, a request takes effect and only its response is lost.
    """

    code: int
    times: int = 1
    method: str = ""
    collection: str = ""
    is_watch: bool | None = None
    after: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = ""

    def matches(self, request: Request) -> bool:
        is_watch = "watch" in request.query
        return (
            self.times > 0
            and self.method in ("", request.method)
            and self.collection in ("", Target.of(request.path).collection)
            and self.is_watch in (None, is_watch)
        )


class Stream:
    """One open watch. A streamed list comes first, and ends with a bookmark."""

    def __init__(self, server: "Server", target: Target, query: Mapping[str, str]) -> None:
        loop = asyncio.get_running_loop()
        self.target = target
        self.is_silent = False
        self.is_mute = False
        self._server = server
        self._query = query
        self._lines: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()
        self._ends_at = loop.time() + float(query["timeoutSeconds"])

    def on_watch_event(self, entry: Entry) -> None:
        """Send a change of a selected object."""
        if entry.collection != self.target.collection:
            return
        old, new = (self._selected(state) for state in (entry.old, entry.new))
        if new is not None:
            self.send("ADDED" if old is None else "MODIFIED", new)
        elif old is not None:
            version = {"resourceVersion": str(entry.revision)}
            self.send("DELETED", {**old, "metadata": {**old["metadata"], **version}})

    def _selected(self, state: Object | None) -> Object | None:
        return state if state and selects(self.target, self._query, state) else None

    def send(self, type_: str, object_: Object) -> None:
        self._lines.put_nowait(msgspec.json.encode({"type": type_, "object": object_}) + b"\n")

    def expire(self) -> None:
        self.send("ERROR", status(410, "Expired", "too old resource version"))
        self.end()

    def end(self) -> None:
        self._lines.put_nowait(None)

    def cut(self) -> None:
        """Break the connection: pending lines are lost, half a line may get through."""
        rest = self._lines.get_nowait() if not self._lines.empty() else None
        while not self._lines.empty():
            self._lines.get_nowait()
        if isinstance(rest, bytes) and self._server.random.random() < 0.5:
            self._lines.put_nowait(rest[: len(rest) // 2])
        self._lines.put_nowait(Unreachable("the connection was cut"))

    async def body(self) -> AsyncIterator[bytes]:
        """The bytes of the stream, in pieces that do not end with lines."""
        loop = asyncio.get_running_loop()
        while True:
            wait = asyncio.timeout_at(min(self._ends_at, loop.time() + BOOKMARK_SECONDS))
            try:
                async with wait:
                    line = await self._lines.get()
            except TimeoutError:
                line = None if loop.time() >= self._ends_at else self._bookmark()
            else:
                await self._server.pause(self._server.lag_seconds)
            if self.is_silent:
                await asyncio.sleep(10**6)
            if line is None:
                return
            if self.is_mute:
                continue
            if isinstance(line, Exception):
                raise line
            at = self._server.random.randint(0, len(line))
            for piece in (line[:at], line[at:]):
                if piece:
                    yield piece

    def list(self, items: Iterable[Object]) -> None:
        for item in items:
            self.send("ADDED", item)
        if seconds := self._server.drawn(self._server.mark_seconds):
            asyncio.get_running_loop().call_later(seconds, self._end_list)
        else:
            self._end_list()

    def _end_list(self) -> None:
        end = {"annotations": {"k8s.io/initial-events-end": "true"}}
        self.send("BOOKMARK", {"metadata": {**self._version(), **end}})

    def _version(self) -> Object:
        return {"resourceVersion": str(self._server.storage.revision)}

    def _bookmark(self) -> bytes:
        line = {"type": "BOOKMARK", "object": {"metadata": self._version()}}
        return msgspec.json.encode(line) + b"\n"


@dataclass
class _Snapshot:
    revision: int
    items: list[Object]


class Server:
    """An API server whose delays and faults a test chooses.

    `STREAMS_LISTS` is whether it supports streaming lists, which an older one refuses.

    `refuse` is the admission of writes: it returns the `Status` of a refusal, or None to admit it.

    `request_seconds` pass before a request takes effect, `answer_seconds` after it, `lag_seconds` before each
    line of a watch. A streamed list ends `mark_seconds` after its first objects; changes meanwhile are sent
    before its end. With `is_jittered` these are upper bounds of random delays.
    """

    STREAMS_LISTS: bool = True

    def __init__(self, seed: int = 0) -> None:
        self.storage = Storage()
        self.random = random.Random(seed)  # noqa: S311  # the same seed, the same world
        self.request_seconds = 0.0
        self.answer_seconds = 0.0
        self.lag_seconds = 0.0
        self.mark_seconds = 0.0
        self.is_jittered = False
        self.page_limit = 500
        self.gone_as_event = False
        self.faults: list[Fault] = []
        self.refuse: Callable[[Request, Target], Object | None] = lambda _, __: None
        self.requests: list[Request] = []
        self.streams: list[Stream] = []
        self._snapshots: dict[str, _Snapshot] = {}
        self._tokens = count(1)
        self.storage.listeners.append(self._commit)

    # For assertions.

    def lists(self, type_: type[Resource]) -> int:
        """The number of lists that were started, in pages or as an accepted stream."""
        return sum(
            self._streams_list(request)
            if "watch" in request.query
            else request.method == "GET" and "continue" not in request.query
            for request in self._collection_requests(type_)
        )

    def watches(self, type_: type[Resource]) -> int:
        """The number of requested watches that resume from a version."""
        return sum("resourceVersion" in request.query for request in self._collection_requests(type_))

    def _collection_requests(self, type_: type[Resource]) -> list[Request]:
        suffix = f"/{type_.KIND.plural}"
        return [request for request in self.requests if request.path.endswith(suffix)]

    def _streams_list(self, request: Request) -> bool:
        return self.STREAMS_LISTS and "sendInitialEvents" in request.query

    async def pause(self, seconds: float) -> None:
        """Let a delay pass."""
        await asyncio.sleep(self.drawn(seconds))

    def drawn(self, seconds: float) -> float:
        return self.random.uniform(0, seconds) if self.is_jittered else seconds

    def _commit(self, entry: Entry) -> None:
        for stream in self.streams:
            stream.on_watch_event(entry)

    # The transport.

    async def send(self, request: Request) -> Answer:
        """Handle a request, or fail as configured."""
        self.requests.append(request)
        fault = next((fault for fault in self.faults if fault.matches(request)), None)
        await self.pause(self.request_seconds)
        if fault is not None:
            fault.times -= 1
            if not fault.after:
                return _fail(fault)
        try:
            answer = self._answer(request)
        except Refused as error:
            answer = _answer(error.code, status(error.code, error.reason, str(error)))
        await self.pause(self.answer_seconds)
        return answer if fault is None else _fail(fault)

    def _answer(self, request: Request) -> Answer:
        target = Target.of(request.path)
        body: Any = msgspec.json.decode(request.body) if request.body else None
        if request.method != "GET" and (refusal := self.refuse(request, target)):
            return _answer(refusal["code"], refusal)
        if target.is_version:
            raise Refused(404, "NotFound", "the server could not find the requested resource")
        if request.method == "GET" and not target.name:
            return (
                self._watch(target, request.query)
                if "watch" in request.query
                else (self._list(target, request.query))
            )
        return _answer(201 if request.method == "POST" else 200, self._object(request, target, body))

    def _object(self, request: Request, target: Target, body: Any) -> Object:
        storage, collection = self.storage, target.collection
        match request.method:
            case "GET":
                return storage.read(collection, target.key)
            case "POST":
                return storage.create(collection, body)
            case "PUT":
                return storage.replace(collection, body, target.subresource)
            case "PATCH" if "apply" in request.content_type:
                return storage.apply(collection, body, request.query["fieldManager"])
            case "PATCH":
                return storage.merge(collection, target.key, body, target.subresource)
            case "DELETE":
                preconditions = (body or {}).get("preconditions", {})
                left = storage.delete(collection, target.key, preconditions)
                return left or status(200, "", "")
        raise Refused(405, "MethodNotAllowed")

    def _list(self, target: Target, query: Mapping[str, str]) -> Answer:
        if token := query.get("continue"):
            snapshot = self._snapshots[token]
            if snapshot.revision < self.storage.compacted:
                raise Refused(410, "Expired", "the provided continue parameter is too old")
        else:
            snapshot = _Snapshot(self.storage.revision, self._selected(target, query))
        limit = min(self.page_limit, int(query.get("limit", "500")))
        page, rest = snapshot.items[:limit], snapshot.items[limit:]
        metadata = {"resourceVersion": str(snapshot.revision)}
        if rest:
            metadata["continue"] = f"token-{next(self._tokens)}"
            self._snapshots[metadata["continue"]] = _Snapshot(snapshot.revision, rest)
        return _answer(200, {"metadata": metadata, "items": page or None})

    def _selected(self, target: Target, query: Mapping[str, str]) -> list[Object]:
        everything = self.storage.objects.get(target.collection, {}).values()
        return [body for body in everything if selects(target, query, body)]

    def _watch(self, target: Target, query: Mapping[str, str]) -> Answer:
        stream = Stream(self, target, query)
        if "sendInitialEvents" in query:
            if not self.STREAMS_LISTS:
                raise Refused(422, "Invalid", "sendInitialEvents: Forbidden")
            stream.list(self._selected(target, query))
            since = self.storage.revision
        else:
            since = int(query["resourceVersion"])
        if since < self.storage.compacted:
            if not self.gone_as_event:
                raise Refused(410, "Expired", "too old resource version")
            stream.expire()
        for entry in self.storage.history:
            if entry.revision > since:
                stream.on_watch_event(entry)
        self.streams.append(stream)

        def close() -> None:
            if stream in self.streams:
                self.streams.remove(stream)

        return Answer(200, {}, stream.body(), close)


def selects(target: Target, query: Mapping[str, str], body: Object) -> bool:
    """Whether an object is in the namespace and matches the label or field selector."""
    metadata = body["metadata"]
    labels = metadata.get("labels", {})
    terms = filter(None, query.get("labelSelector", "").split(","))
    named = query.get("fieldSelector", "").removeprefix("metadata.name=")
    if "metadata.name=" in query.get("fieldSelector", "") and named != metadata["name"]:
        return False
    return target.namespace in ("", metadata.get("namespace", "")) and all(
        _meets(labels, term) for term in terms
    )


def _meets(labels: Mapping[str, str], term: str) -> bool:
    if "!=" in term:
        name, _, value = term.partition("!=")
        return labels.get(name) != value
    if term.startswith("!"):
        return term[1:] not in labels
    name, equals, value = term.partition("=")
    return labels.get(name) == value if equals else name in labels


def status(code: int, reason: str, message: str) -> Object:
    """A `Status` object."""
    return {"kind": "Status", "code": code, "reason": reason, "message": message or reason}


def _fail(fault: Fault) -> Answer:
    if fault.code == NO_ANSWER:
        raise Unreachable("connection refused")
    reason = {403: "Forbidden", 404: "NotFound", 410: "Expired", 429: "TooManyRequests"}
    text = reason.get(fault.code, "InternalError")
    return _answer(fault.code, status(fault.code, text, fault.message or text), fault.headers)


def _answer(code: int, body: Object, headers: Mapping[str, str] | None = None) -> Answer:
    async def chunks(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return Answer(code, headers or {}, chunks((msgspec.json.encode(body),)))
