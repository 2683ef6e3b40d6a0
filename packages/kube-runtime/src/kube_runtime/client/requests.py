"""Typed requests to the API server.

A controller decides from a cache, and the object may have been deleted and recreated under the same name
since. So a write carries the uid of its object, and a mismatch is a `Conflict`, whatever the API server
answers.
Source: `docs/decisions/0005-credentials.md`, measured on v1.36.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic

import msgspec

from kube_runtime.client.api_errors import causes, error_of_answer
from kube_runtime.client.retry import ask
from kube_runtime.client.transport import MOST_ANSWER_BYTES, Request, Transport
from kube_runtime.client.watch_lines import WatchLine, lines, watch_line
from kube_runtime.decode import (
    UNLIMITED,
    UNREADABLE,
    ObjectList,
    decode,
    decode_items,
    decode_list,
)
from kube_runtime.errors import (
    Conflict,
    DecodeError,
    Invalid,
    NotFound,
    ServerFailure,
    TooLarge,
)
from kube_runtime.kind import Key, Kind, Object, key_of
from kube_runtime.types.meta import R, Resource
from kube_runtime.url_path import url_path

ABSENT = ""
"""As the uid of an apply: no such object may exist yet."""

APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
MERGE_PATCH = "application/merge-patch+json"
_NO_VERSION = "1"  # etcd starts with revision 1, so the first object has version 2
_CONFLICT = 409

_PAGE = 500
"""Most objects of a page, unless they exceed the limit of bytes."""
_FEWER = 8
"""A page that is too large is requested again with so many times fewer objects."""

_QUIETLY = {"fieldValidation": "Ignore"}
"""By default the API server parses the body of an apply twice, to warn of duplicate fields; ours has none.
Without that, an apply of a Deployment takes a tenth less of its CPU time (measured on v1.36). It refuses
unknown fields in an apply all the same.
"""


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

    `field_manager` owns the fields that are written; it may be empty for clients that do not apply. `waits`
    is whether reads are retried while the API server does not answer.
    """

    def __init__(
        self, transport: Transport, *, field_manager: str = "", waits: bool = True
    ) -> None:
        self._transport = transport
        self.field_manager = field_manager
        self._waits = waits

    async def get(self, type_: type[R], key: Key, most_bytes: int = MOST_ANSWER_BYTES) -> R:
        """Get an object.

        Raises:
            NotFound: it does not exist.
            TooLarge: its JSON has more than `most_bytes`.
            DecodeError: it does not fit its type.
        """
        request = Request("GET", type_.KIND.path(*key), most_bytes=most_bytes)
        return decode(type_, await self._ask(request, type_.KIND, key, repeatable=True))

    async def get_raw(self, kind: Kind, key: Key) -> Object:
        """Get a whole object as JSON.

        Raises:
            NotFound: it does not exist.
        """
        body = await self._ask(Request("GET", kind.path(*key)), kind, key, repeatable=True)
        return _json(body, f"{kind} {key}")

    async def get_json(self, *segments: str) -> Object:
        """Get the JSON at a path of the API server that belongs to no kind, such as "apis", "apps", "v1"."""
        path = url_path(*segments)
        body = await self._ask(Request("GET", path), None, None, repeatable=True)
        return _json(body, path)

    async def pages(
        self,
        type_: type[R],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = _PAGE,
        resource_version: str | None = None,
        most_bytes: int = UNLIMITED,
    ) -> AsyncGenerator[Page[R], None]:
        """List the objects of a kind in pages; all pages are of the same resource version.

        Objects of more than `most_bytes` are among the broken ones.

        `resource_version="0"` lists from the API server's cache, which may be behind; the list comes as one
        page. With another version the list is not older than that. By default it is the newest state.

        Raises:
            Expired: the list took too long; start again.
            DecodeError: the response is not a list.
        """
        query = _selectors(labels, fields)
        if resource_version is not None:
            query["resourceVersion"] = resource_version
            if resource_version != "0":
                query["resourceVersionMatch"] = "NotOlderThan"
        accept = _accept(type_, "PartialObjectMetadataList")
        async for page in self._pages(type_.KIND, namespace, query, accept, limit):
            items, broken = decode_items(type_, page.items or [], most_bytes)
            yield Page(items, broken, page.metadata.resource_version)

    async def raw_pages(
        self, kind: Kind, *, namespace: str = "", labels: str = ""
    ) -> AsyncGenerator[list[msgspec.Raw], None]:
        """List the objects of a kind in pages, each object as JSON text.

        Raises: as `pages`.
        """
        query = _selectors(labels, "")
        async for page in self._pages(kind, namespace, query, "application/json", _PAGE):
            yield page.items or []

    async def _pages(
        self, kind: Kind, namespace: str, query: dict[str, str], accept: str, limit: int
    ) -> AsyncGenerator[ObjectList, None]:
        """The pages of a list. One that exceeds the limit of bytes is requested again with fewer objects."""
        path, start = kind.path(namespace), query
        while True:
            request = Request("GET", path, start | {"limit": str(limit)}, accept=accept)
            try:
                body = await self._ask(request, kind, None, repeatable=True)
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // _FEWER)
                continue
            page = decode_list(kind, body)
            yield page
            if not page.metadata.continue_:
                return
            # The token implies the version of the first page; a second one would be refused.
            versions = ("resourceVersion", "resourceVersionMatch")
            rest = {name: value for name, value in query.items() if name not in versions}
            start = rest | {"continue": page.metadata.continue_}

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

        Without a version, the existing objects come first as ADDED events, and a bookmark marks their end.
        After `timeout_seconds` the API server ends the watch. There is no retry, and no limit of silence.

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
        path = type_.KIND.path(namespace)
        accept = _accept(type_, "PartialObjectMetadata")
        request = Request("GET", path, query, timeout_seconds=None, accept=accept)
        answer = await self._transport.send(request)
        try:
            if answer.status != 200:  # noqa: PLR2004
                body = await answer.read_error()
                raise error_of_answer(answer.status, answer.headers, body, type_.KIND)
            async with aclosing(lines(answer.body)) as stream:
                async for line in stream:
                    yield watch_line(line, type_.KIND)
        finally:
            await answer.aclose()

    async def apply(
        self, type_: type[R], desired: Object, *, force: bool, uid: str | None = None
    ) -> R:
        """Apply `desired` server-side, and return the object.

        `uid` is that of the present object, or `ABSENT` if there must be none. By default the object is
        created or changed, whichever it is. `force` takes over fields of other managers; without it those
        are a conflict, but an object that shares no field is still changed.

        Raises:
            Conflict: another object than expected, or a field of another manager. Nothing was written.
            Invalid: refused; also when another controller owns the object.
        """
        key = key_of(desired)
        body = _guarded(desired, uid)
        if uid == ABSENT:
            # A version other than the present one is refused; without a present object it is ignored.
            body["metadata"]["resourceVersion"] = _NO_VERSION
        request = Request(
            "PATCH",
            type_.KIND.path(*key),
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
        path = type_.KIND.path(key.namespace)
        request = Request("POST", path, self._query, msgspec.json.encode(desired))
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

        `field_manager` owns the changed fields; by default that of the client.

        For the status of a custom resource the API server does not check the uid: the conflict is detected
        after the write. A `metadata.resourceVersion` in the patch prevents the write.

        Raises:
            NotFound: the object does not exist.
            Conflict: another object than expected, or another version.
        """
        request = Request(
            "PATCH",
            type_.KIND.path(*key, subresource),
            self._query | ({"fieldManager": field_manager} if field_manager else {}),
            msgspec.json.encode(_guarded(patch, uid)),
            MERGE_PATCH,
        )
        return await self._write(request, type_, key, uid, repeatable=uid is not None)

    async def replace(self, type_: type[R], key: Key, desired: Object) -> R:
        """Replace an object as a whole, and return it.

        Raises:
            Conflict: the `metadata.resourceVersion` in `desired` is not the present one.
        """
        body = msgspec.json.encode(desired)
        request = Request("PUT", type_.KIND.path(*key), self._query, body)
        return await self._write(request, type_, key, None, repeatable=False)

    async def delete(
        self,
        type_: type[Resource],
        key: Key,
        *,
        uid: str,
        resource_version: str | None = None,
    ) -> None:
        """Delete this object; the garbage collector deletes what it owns. Absence is success.

        Raises:
            Conflict: another object has its name now, or it has another version.
        """
        preconditions = {"uid": uid}
        if resource_version is not None:
            preconditions["resourceVersion"] = resource_version
        options = {"preconditions": preconditions, "propagationPolicy": "Background"}
        request = Request("DELETE", type_.KIND.path(*key), body=msgspec.json.encode(options))
        try:
            await self._ask(request, type_.KIND, key, repeatable=True)
        except NotFound:
            return

    @property
    def _query(self) -> dict[str, str]:
        return _given({"fieldManager": self.field_manager}) | _QUIETLY

    async def _ask(
        self, request: Request, kind: Kind | None, key: Key | None, *, repeatable: bool
    ) -> bytes:
        return await ask(
            *(self._transport, request, kind, key), repeatable=repeatable, waits=self._waits
        )

    async def _write(
        self, request: Request, type_: type[R], key: Key, uid: str | None, *, repeatable: bool
    ) -> R:
        try:
            body = await self._ask(request, type_.KIND, key, repeatable=repeatable)
        except Invalid as error:
            if uid and any(cause.get("field") == "metadata.uid" for cause in causes(error.details)):
                raise _other_object(type_, key, uid) from error
            raise
        except Conflict as error:
            if uid == ABSENT:
                raise Conflict(
                    _CONFLICT, "AlreadyExists", "exists already", type_.KIND, key
                ) from error
            raise
        written = decode(type_, body)
        if uid and written.metadata.uid != uid:
            raise _other_object(type_, key, uid)
        return written


def _json(body: bytes, source: str) -> Object:
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
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
