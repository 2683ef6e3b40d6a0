"""Requests to the API server: typed calls, retries, and the transports below them."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, Literal, Protocol, cast

import msgspec
from msgspec import structs

from kube_runtime.errors import (
    ApiError,
    Conflict,
    DecodeError,
    Invalid,
    NotFound,
    Refused,
    ServerFailure,
    Throttled,
    TooLarge,
    Unreachable,
    error_type,
    is_unconverted,
)
from kube_runtime.times import Backoff, FairSemaphore, loop_time
from kube_runtime.types.meta import Key, Kind, Object, R, Resource, Struct, decoder_of, from_json, key_of
from kube_runtime.wire import (
    UNLIMITED,
    UNREADABLE,
    ObjectList,
    Translation,
    UrlPath,
    decode,
    decode_items,
    decode_list,
    path_of,
    url_path,
)

RETRY_AFTER_LIMIT_SECONDS = 60.0
"""Longest `Retry-After` that is honoured; an hour, for example, is a mistake of something on the way."""

_TEXT_LIMIT = 300
_GONE = 410
_UNKNOWN_FIELD = "failed to create typed patch object"
_WEBHOOK, _BY_WEBHOOK = 'admission webhook "', " denied the request"
_POLICY, _BY_POLICY = "ValidatingAdmissionPolicy '", " denied request: "
"""How the messages of denials begin, and continue (`k8s.io/apiserver`, v1.36). The code is the webhook's or
the policy's choice."""


class _Status(Struct, frozen=True):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: Object | None = None


_STATUS = decoder_of(_Status)


def error_of_answer(
    code: int, headers: Mapping[str, str], body: bytes, kind: Kind | None = None, key: Key | None = None
) -> ApiError:
    """The error of an HTTP response with status `code`."""
    status = _status(body)
    if status is None:
        text = " ".join(body.decode("utf-8", "replace").split())
        status = _Status(message=text[:_TEXT_LIMIT] or f"HTTP {code} without a message")
    error = _error(code, status, kind, key)
    asked = headers.get("retry-after", "")
    if asked.isascii() and asked.isdigit():
        error.retry_after_seconds = min(float(asked), RETRY_AFTER_LIMIT_SECONDS)
    return error


def error_of_watch(raw: bytes | msgspec.Raw, kind: Kind) -> ApiError:
    """The error in an ERROR event of a watch; an empty one counts as 410, which makes the watch relist."""
    status = _status(raw) or _Status(message="the watch ended with an unreadable error")
    return _error(status.code or _GONE, status, kind, None)


# Not every response is a `Status`: a proxy on the way answers with HTML, and the API server itself
# answers an unknown path with plain text.
def _status(body: bytes | msgspec.Raw) -> _Status | None:
    try:
        status = _STATUS.decode(body)
    except UNREADABLE:
        return None
    return status if status.message or status.reason else None


def _error(code: int, status: _Status, kind: Kind | None, key: Key | None) -> ApiError:
    type_ = error_type(code)
    if status.message.startswith(_UNKNOWN_FIELD):
        # The object has a field that the API does not know, so a retry fails again.
        # Source: v1.36, measured; it answers such an apply with 500 and no reason.
        type_ = Invalid
    elif type_ is Invalid or not issubclass(type_, Refused):
        by_webhook = status.message.startswith(_WEBHOOK) and _BY_WEBHOOK in status.message
        if by_webhook or (_POLICY in status.message and _BY_POLICY in status.message):
            type_ = Refused
    return type_(
        code=code,
        reason=status.reason,
        message=_with_causes(status),
        kind=kind,
        key=key,
        details=status.details,
    )


def _with_causes(status: _Status) -> str:
    text = status.message or status.reason
    for cause in causes(status.details):
        message = str(cause.get("message", ""))
        if message and message not in text:
            field = cause.get("field")
            text += f"; {field}: {message}" if field else f"; {message}"
    return text


def causes(details: Object | None) -> list[Object]:
    """The causes in the details of an error; each has `reason`, `field` and `message`."""
    entries = (details or {}).get("causes")
    return [cause for cause in entries if isinstance(cause, dict)] if isinstance(entries, list) else []


ANSWER_SECONDS = 30.0
MOST_ANSWER_BYTES = 10 * 1024 * 1024
"""Most bytes of a response. etcd stores 1.5 MiB per object; its JSON has up to six times as many, because the
API server escapes `<`, `>` and `&`. The rest is for the line of a watch, or the list, around it."""
MOST_ERROR_BYTES = 1024 * 1024
"""Most bytes of an error; the rest is cut off."""


class Request(msgspec.Struct, frozen=True):
    """One HTTP request.

    `timeout_seconds` counts up to the last byte of the response; watches have none. `most_bytes` is the limit
    of a response that is read as a whole.
    """

    method: str
    path: UrlPath
    query: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    body: bytes | None = None
    content_type: str = "application/json"
    timeout_seconds: float | None = ANSWER_SECONDS
    accept: str = "application/json"
    most_bytes: int = MOST_ANSWER_BYTES


@dataclass(slots=True)
class Answer:
    """Status, headers (by lower-case name) and body of a response. Read it or close it."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    close: Callable[[], None] = lambda: None

    async def read(self, most_bytes: int) -> bytes:
        """Read the body, up to `most_bytes`; a longer one is cut off after one more.

        Raises Unreachable if the connection broke.
        """
        chunks: list[bytes] = []
        rest = most_bytes + 1
        try:
            async for chunk in self.body:
                chunks.append(chunk[:rest])
                rest -= len(chunks[-1])
                if rest == 0:
                    break
            return b"".join(chunks)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Return the connection to the pool, or close it if the body was not read to the end."""
        close_body = getattr(self.body, "aclose", None)  # a generator has to be closed
        if close_body is not None:
            await close_body()
        self.close()


class Transport(Protocol):
    """Sends requests: to a real API server, or to a simulated one in tests."""

    async def send(self, request: Request) -> Answer:
        """Send a request, and return the response of any status; its body may still be on the way.

        Raises:
            Unreachable: no response.
        """
        ...


TRIES = 4
TOTAL_SECONDS = 15.0
LONGEST_WAIT_SECONDS = 10.0
_BACKOFF = Backoff(first_seconds=0.75, limit_seconds=LONGEST_WAIT_SECONDS)
_OK = range(200, 300)
_NOT_IMPLEMENTED = 501


# Else each call on the way from the controller to the client would pass the list along.
sent_methods: ContextVar[list[str] | None] = ContextVar("sent_methods", default=None)
"""A list to which the method of each request is added that the context and its tasks send."""

ensure_allowed: ContextVar[Callable[[], None]] = ContextVar("ensure_allowed", default=lambda: None)
"""What is called right before each request, or retry, of the context; what it raises prevents it."""


async def once(transport: Transport, request: Request, kind: Kind | None, key: Key | None) -> bytes:
    """Send a request once, and return the body of the response.

    Raises ApiError, Unreachable, or TooLarge for a response of more than `request.most_bytes`.
    """
    ensure_allowed.get()()
    if (sent := sent_methods.get()) is not None:
        sent.append(request.method)
    answer = await transport.send(request)
    if answer.status not in _OK:
        text = await answer.read(MOST_ERROR_BYTES)
        error = error_of_answer(answer.status, answer.headers, text, kind, key)
        error.method = request.method
        raise error
    body = await answer.read(request.most_bytes)
    if len(body) > request.most_bytes:
        raise TooLarge(kind, key, f"the answer has more than {request.most_bytes} bytes")
    return body


class WatchLine(Struct, frozen=True):
    """One event of a watch, its object still JSON text; of ERROR that is a `Status`."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


_LINE = decoder_of(WatchLine)


_SPLIT_LINE = re.compile(rb'(\{"type":"[A-Z]*","object":)(.*)\}\s*', re.DOTALL)
"""A line as the API server writes it: nothing of it is text of a user before the object."""


def watch_line(line: bytes, kind: Kind) -> WatchLine:
    """Decode one line, its object still JSON text.

    Raises:
        Unreachable: the line is unreadable.
    """
    try:
        try:
            return _LINE.decode(line)
        except RecursionError:
            # The object is nested too deeply even to be skipped: an error of its reader, not of the stream.
            split = _SPLIT_LINE.fullmatch(line)
            if split is None:
                raise Unreachable(f"{kind}: the watch sent an unreadable line") from None
            start, nested = split.groups()
            return structs.replace(_LINE.decode(start + b"null}"), object=msgspec.Raw(nested))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{kind}: the watch sent an unreadable line: {error}") from error


async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split a stream of chunks into lines, without empty ones. No byte is searched twice.

    Raises:
        Unreachable: the stream ended within a line, or a line has more than `MOST_ANSWER_BYTES`.
    """
    begun: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join((*begun, end))
            begun, size = [], 0
            if line.strip():
                yield line
        if rest:
            begun.append(rest)
            size += len(rest)
        if size > MOST_ANSWER_BYTES:
            raise Unreachable(f"the watch sent a line of more than {MOST_ANSWER_BYTES} bytes")
    if begun:
        raise Unreachable("the watch was cut in the middle of a line")


ABSENT = ""
"""As the uid of an apply: no such object may exist yet."""

APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
MERGE_PATCH = "application/merge-patch+json"
_JSON_PATCH = "application/json-patch+json"
_NO_VERSION = "1"  # etcd starts with revision 1, so the first object has version 2
_CONFLICT = 409

_PAGE = 500
"""Most objects of a page, unless they exceed the limit of bytes."""
_FEWER = 8
"""A page that is too large is requested again with so many times fewer objects."""

_QUIETLY = {"fieldValidation": "Ignore"}
"""By default the API server parses the body of an apply twice, to warn of duplicate fields; ours has none.
Without that, an apply of a Deployment takes a tenth less of its CPU time (measured on v1.36). It refuses
unknown fields in an apply all the same."""

_FROM_NOW = {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
"""Without a version: not older than the newest state now (KEP-3157)."""


@dataclass(frozen=True, slots=True)
class Page(Generic[R]):
    """One page of a list; `broken` has an error for each object that does not fit its type."""

    items: list[R]
    broken: list[DecodeError]
    resource_version: str


class Client:
    """A client of the API server, over a transport. Every method raises `ApiError` and `Unreachable`.

    `field_manager` owns the fields that are written; clients that do not apply need none. `waits`: reads are
    retried also without a response; the user of a command line learns at once that a cluster is down.
    `translations` are those of kinds that are stored in another version than that of our types.
    """

    def __init__(self, transport: Transport, *, field_manager: str = "", waits: bool = True) -> None:
        self._transport = transport
        self.translations: dict[Kind, Translation] = {}
        self.field_manager = field_manager
        self._query = _given({"fieldManager": field_manager}) | _QUIETLY
        self._waits = waits

    def decode(
        self, type_: type[R], raw: bytes | msgspec.Raw, most_bytes: int = UNLIMITED, decoded: R | None = None
    ) -> R:
        """Decode an object that the API server has sent; see `wire.decode`."""
        return decode(type_, raw, most_bytes, self.translations.get(type_.KIND), decoded)

    def _written(self, type_: type[Resource], body: Object) -> Object:
        translation = self.translations.get(type_.KIND)
        return translation.written(body) if translation else body

    def stored(self, kind: Kind) -> Kind:
        """A kind in the version in which the API server stores it."""
        translation = self.translations.get(kind)
        return translation.stored if translation else kind

    def _path_of(self, kind: Kind, namespace: str = "", name: str | None = None, sub: str = "") -> UrlPath:
        return path_of(self.stored(kind), namespace, name, sub)

    async def get(self, type_: type[R], key: Key, most_bytes: int = MOST_ANSWER_BYTES) -> R:
        """Get an object.

        Raises:
            NotFound: it does not exist.
            TooLarge: its JSON has more than `most_bytes`.
            DecodeError: it does not fit its type.
        """
        request = Request("GET", self._path_of(type_.KIND, *key), most_bytes=most_bytes)
        return self.decode(type_, await self.ask(request, type_.KIND, key, repeatable=True))

    async def get_raw(self, kind: Kind, key: Key) -> Object:
        """Get a whole object as JSON, in its stored version.

        Raises:
            NotFound: it does not exist.
        """
        body = await self.ask(Request("GET", self._path_of(kind, *key)), kind, key, repeatable=True)
        return _json(body, f"{kind} {key}")

    async def get_json(self, *segments: str) -> Object:
        """Get the JSON at a path of the API server that belongs to no kind, such as "apis", "apps", "v1"."""
        path = url_path(*segments)
        body = await self.ask(Request("GET", path), None, None, repeatable=True)
        return _json(body, path)

    async def pages(
        self,
        type_: type[R],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        most_bytes: int = UNLIMITED,
    ) -> AsyncGenerator[Page[R], None]:
        """List the objects of a kind in pages, all of the newest resource version.

        Objects of more than `most_bytes` are among the broken ones.

        Raises:
            Expired: the list took too long; start again.
            DecodeError: the response is not a list.
        """
        accept = _accept(type_, "PartialObjectMetadataList")
        async for page in self.raw_pages(type_.KIND, namespace, labels, fields, accept=accept):
            # Without a name, which would keep the objects until the next page is here.
            items = decode_items(type_, page.items or [], most_bytes, self.translations.get(type_.KIND))
            yield Page(*items, page.metadata.resource_version)

    async def raw_pages(
        self,
        kind: Kind,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        *,
        accept: str = "application/json",
    ) -> AsyncGenerator[ObjectList, None]:
        """The same as `pages`, each object as JSON text."""
        path, limit, start = self._path_of(kind, namespace), _PAGE, dict[str, str]()
        while True:
            query = _selectors(labels, fields) | start | {"limit": str(limit)}
            try:
                body = await self.ask(Request("GET", path, query, accept=accept), kind, None, repeatable=True)
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // _FEWER)
                continue
            page = decode_list(kind, body)
            yield page
            if not page.metadata.continue_:
                return
            start = {"continue": page.metadata.continue_}

    async def watch(
        self,
        type_: type[Resource],
        *,
        resource_version: str | None,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_seconds: float,
    ) -> AsyncGenerator[WatchLine, None]:
        """Watch the changes after a version, with bookmarks, until the server or the caller ends it.

        Without a version, the existing objects come first as ADDED events, up to a bookmark. The API server
        ends the watch after `timeout_seconds`. There is no retry, and no limit of silence.

        Raises:
            Expired: the version is too old; list again. It may also come as an ERROR event.
            Invalid: the API server cannot send the existing objects first.
            Unreachable: the connection broke.
        """
        since = {"resourceVersion": resource_version} if resource_version is not None else _FROM_NOW
        query = _selectors(labels, fields) | {
            **since,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(max(1, round(timeout_seconds))),
        }
        path = self._path_of(type_.KIND, namespace)
        accept = _accept(type_, "PartialObjectMetadata")
        request = Request("GET", path, query, timeout_seconds=None, accept=accept)
        answer = await self._transport.send(request)
        try:
            if answer.status != 200:  # noqa: PLR2004
                body = await answer.read(MOST_ERROR_BYTES)
                raise error_of_answer(answer.status, answer.headers, body, type_.KIND)
            async with aclosing(lines(answer.body)) as stream:
                async for line in stream:
                    yield watch_line(line, type_.KIND)
        finally:
            await answer.aclose()

    async def apply(self, type_: type[R], desired: Object, *, force: bool, uid: str | None = None) -> R:
        """Apply `desired` server-side, and return the object.

        `uid` is that of the present object, or `ABSENT` if there must be none; by default either will do.
        `force` takes over fields of other managers, which are a conflict otherwise.

        Raises:
            Conflict: another object than expected, or a field of another manager. Nothing was written.
            Invalid: refused; also when another controller owns the object.
        """
        key = key_of(desired)
        body = _guarded(self._written(type_, desired), uid)
        if uid == ABSENT:
            # A version other than the present one is refused; without a present object it is ignored.
            body["metadata"]["resourceVersion"] = _NO_VERSION
        request = Request(
            "PATCH",
            self._path_of(type_.KIND, *key),
            self._query | {"force": "true" if force else "false"},
            msgspec.json.encode(body),
            APPLY_PATCH,
        )
        return await self._write(request, type_, key, uid, repeatable=uid != ABSENT)

    async def create(self, type_: type[R], desired: Object) -> R:
        """Create an object, and return it.

        Not for objects that are applied later: an apply does not remove the fields that a create set.

        Raises:
            Conflict: the name is taken.
        """
        key = key_of(desired)
        path = self._path_of(type_.KIND, key.namespace)
        request = Request("POST", path, self._query, msgspec.json.encode(self._written(type_, desired)))
        return await self._write(request, type_, key, None, repeatable=False)

    async def merge_patch(
        self,
        type_: type[R],
        key: Key,
        patch: Object,
        *,
        subresource: str = "",
        uid: str | None = None,
        field_manager: str = "",
    ) -> R:
        """Change an object by a JSON merge patch, and return it.

        `field_manager` owns the changed fields; by default that of the client. The API server does not check
        the uid for the status of a custom resource, so that the conflict is detected after the write. A
        `metadata.resourceVersion` in the patch prevents the write.

        Raises:
            NotFound: the object does not exist.
            Conflict: another object than expected, or another version.
        """
        translation = self.translations.get(type_.KIND)
        stored = translation.patch(patch) if translation else patch
        request = Request(
            "PATCH",
            self._path_of(type_.KIND, *key, subresource),
            self._query | ({"fieldManager": field_manager} if field_manager else {}),
            msgspec.json.encode(_guarded(stored, uid)),
            MERGE_PATCH,
        )
        return await self._write(request, type_, key, uid, repeatable=uid is not None)

    async def set_field(self, live: R, path: Sequence[str], value: object, *, field_manager: str = "") -> R:
        """Set one field of exactly this state of an object, and return it. Other fields are not sent.

        Raises:
            NotFound: the object does not exist.
            Conflict: another object than expected, or another version.
        """
        type_, metadata = type(live), live.metadata
        translation = self.translations.get(type_.KIND)
        if translation is None:
            patch: object = value
            for name in reversed(path):
                patch = {name: patch}
            whole = {"metadata": {"resourceVersion": metadata.resource_version}, **cast("Object", patch)}
            return await self.merge_patch(
                type_, live.key, whole, uid=metadata.uid, field_manager=field_manager
            )
        pointer, tests = translation.pointer(live, path)
        version = {"op": "add", "path": "/metadata/resourceVersion", "value": metadata.resource_version}
        operations = [version, *tests, {"op": "add", "path": pointer, "value": value}]
        request = Request(
            "PATCH",
            self._path_of(type_.KIND, *live.key),
            self._query | ({"fieldManager": field_manager} if field_manager else {}),
            msgspec.json.encode(operations),
            _JSON_PATCH,
        )
        return await self._write(request, type_, live.key, metadata.uid, repeatable=True)

    async def delete(
        self, type_: type[Resource], key: Key, *, uid: str, resource_version: str | None = None
    ) -> None:
        """Delete this object; the garbage collector deletes what it owns. Absence is success.

        Raises:
            Conflict: another object has its name now, or it has another version.
        """
        preconditions = {"uid": uid}
        if resource_version is not None:
            preconditions["resourceVersion"] = resource_version
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        request = Request("DELETE", self._path_of(type_.KIND, *key), body=msgspec.json.encode(options))
        try:
            await self.ask(request, type_.KIND, key, repeatable=True)
        except NotFound:
            return

    async def ask(self, request: Request, kind: Kind | None, key: Key | None, *, repeatable: bool) -> bytes:
        """`once` with retries, also after a failure if the request is idempotent (`repeatable`).

        `kind` and `key` are for error messages.
        """
        deadline = loop_time() + TOTAL_SECONDS
        tries = 0
        while True:
            tries += 1
            failure: ApiError | Unreachable
            try:
                return await once(self._transport, request, kind, key)
            except Throttled as error:
                # After a 429 nothing has happened, so every request is retried.
                failure, harmless = error, True
            except (ServerFailure, Unreachable) as error:
                # A write may have taken effect, so only an idempotent request is retried.
                if isinstance(error, Unreachable) or is_unconverted(error):
                    may_pass = self._waits
                else:
                    may_pass = error.code != _NOT_IMPLEMENTED
                failure, harmless = error, repeatable and may_pass
            pause = _BACKOFF.seconds(tries)
            asked = failure.retry_after_seconds if isinstance(failure, ApiError) else None
            if asked is not None:
                # With jitter, so that clients with the same response do not all return at once.
                pause = min(asked, LONGEST_WAIT_SECONDS) + min(pause, 1.0)
            if not harmless or tries == TRIES or loop_time() + pause > deadline:
                raise failure
            await asyncio.sleep(pause)

    # A controller decides from a cache, and the object may have been deleted and recreated under the
    # same name since. So a write carries the uid of its object, and a mismatch is a `Conflict`,
    # whatever the API server answers. Source: `docs/decisions/0005-credentials.md`, measured on v1.36.
    async def _write(
        self, request: Request, type_: type[R], key: Key, uid: str | None, *, repeatable: bool
    ) -> R:
        try:
            body = await self.ask(request, type_.KIND, key, repeatable=repeatable)
        except Invalid as error:
            if uid and any(cause.get("field") == "metadata.uid" for cause in causes(error.details)):
                raise _other_object(type_, key, uid) from error
            raise
        except Conflict as error:
            if uid == ABSENT:
                raise Conflict(_CONFLICT, "AlreadyExists", "exists already", type_.KIND, key) from error
            raise
        written = self.decode(type_, body)
        if uid and written.metadata.uid != uid:
            raise _other_object(type_, key, uid)
        return written


def _json(body: bytes, source: str) -> Object:
    try:
        return from_json(body, dict[str, Any])
    except UNREADABLE as error:
        raise ServerFailure(200, "", f"{source} is not JSON: {error}") from error


def _guarded(body: Object, uid: str | None) -> Object:
    metadata = dict(body.get("metadata", {}))
    if uid:
        metadata["uid"] = uid
    return {**body, "metadata": metadata} if metadata else body


def _other_object(type_: type[Resource], key: Key, uid: str) -> Conflict:
    message = f"is another object now, no longer the one with uid {uid}"
    return Conflict(_CONFLICT, "Conflict", message, type_.KIND, key)


def _accept(type_: type[Resource], partial: str) -> str:
    if not type_.METADATA_ONLY:
        return "application/json"
    return f"application/json;as={partial};g=meta.k8s.io;v=v1"


def _selectors(labels: str, fields: str) -> dict[str, str]:
    return _given({"labelSelector": labels, "fieldSelector": fields})


def _given(parameters: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if value}


MOST_AT_ONCE = 64
"""More than all workers send at once."""
_TOO_MANY_REQUESTS = 429
_LEASES = url_path("apis", "coordination.k8s.io", "v1")


# `Client.ask` waits out a single 429. If many requests do so at once, they all return at once, and the
# API server refuses them again. So the limit of concurrent requests halves with each wave of
# refusals and grows by one with each wave of successes, as TCP's congestion window does.
#
# Watches do not count, because they stay open; nor do Leases, because a leader that waits here
# would lose its own.
class Congestion:
    """Wraps a transport: at most `limit` requests at a time, the others wait in order."""

    def __init__(self, transport: Transport, most_at_once: int = MOST_AT_ONCE) -> None:
        self._transport = transport
        self._most = most_at_once
        self._limit = float(most_at_once)
        self._slots = FairSemaphore(most_at_once)
        self._halved_at = float("-inf")

    @property
    def limit(self) -> int:
        """Number of requests that may run now."""
        return int(self._limit)

    async def send(self, request: Request) -> Answer:
        """Send a request when there is room for it.

        Raises:
            Unreachable: no answer.
        """
        if request.timeout_seconds is None or request.path.startswith(_LEASES):
            return await self._transport.send(request)
        await self._slots.enter("")
        try:
            ensure_allowed.get()()  # it may have waited for long
            started = loop_time()
            answer = await self._transport.send(request)
            self._adjust_limit(answer.status, started)
            return answer
        finally:
            self._slots.leave("")

    def _adjust_limit(self, status: int, started: float) -> None:
        if status != _TOO_MANY_REQUESTS:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)
        elif started >= self._halved_at:  # a request that was sent before belongs to the same wave
            self._limit = max(1.0, min(self._limit, self._slots.taken) / 2)
            self._halved_at = loop_time()
        self._slots.limit = self.limit
