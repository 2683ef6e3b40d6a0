"""Read the objects of a cluster. All writes of its own are dry runs."""

from functools import cache
from typing import Any

import msgspec

from dynamo_operator import FIELD_MANAGER
from dynamoctl.screen import warn
from kube_runtime.client.client import APPLY_PATCH, Client, Request, Transport, once
from kube_runtime.decode import UNREADABLE, key_in
from kube_runtime.errors import ApiError, DecodeError, NotFound
from kube_runtime.kind import Key, Kind, Object, key_of
from kube_runtime.types.meta import R, Resource
from kube_runtime.url_path import path_of

_DRY = {"dryRun": "All", "fieldManager": FIELD_MANAGER}


class StoredObject(Resource):
    """An object whose spec and status are JSON values, so that it decodes whatever is in them."""

    READ_LEVELS = 5  # what columns show: the fields of a condition or of an endpoint are in level 4

    spec: Any = None
    status: Any = None


@cache
def stored_type(kind: Kind) -> type[StoredObject]:
    """The type of the stored objects of a kind."""
    return type(f"Stored{kind.name}", (StoredObject,), {"KIND": kind, "__module__": __name__})


class Reading:
    """Reads of one API server. Every method raises `ApiError`, `DecodeError` and `Unreachable`.

    `unreadable` are the objects that lists left out, in words; a warning names each of them once.
    """

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.unreadable: dict[str, None] = {}
        self.client = Client(transport, field_manager=FIELD_MANAGER, waits=False)

    async def all(
        self, type_: type[R], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[R]:
        """Every object of a kind that fits its type; an empty namespace means all."""
        objects: list[R] = []
        async for page in self.client.pages(
            type_, namespace=namespace, labels=labels, fields=fields
        ):
            objects += page.items
            for error in page.broken:
                self._report(error)
        return objects

    async def one(self, type_: type[R], key: Key) -> R | None:
        """The object; None if it does not exist."""
        try:
            return await self.client.get(type_, key)
        except NotFound:
            return None

    async def all_raw(self, kind: Kind, namespace: str, *, labels: str = "") -> list[Object]:
        """Every object of a kind as it is stored; an empty namespace means all."""
        bodies: list[Object] = []
        async for page in self.client.raw_pages(kind, namespace=namespace, labels=labels):
            for item in page:
                try:
                    body = decoded(item, kind, key_in(item))
                except DecodeError as error:
                    self._report(error)
                else:
                    bodies.append({"apiVersion": kind.api_version, "kind": kind.name, **body})
        return bodies

    async def tried(self, kind: Kind, body: Object) -> str:
        """Dry-run the creation of an object; the error of the API server, "" if it accepts it."""
        path = path_of(kind, key_of(body).namespace)
        try:
            await self.send(Request("POST", path, _DRY, msgspec.json.encode(body)), kind)
        except ApiError as error:
            return str(error)
        return ""

    async def applied(self, kind: Kind, body: Object) -> Object:
        """Dry-run a forced apply; the object as it would be."""
        path = path_of(kind, *key_of(body))
        query = {**_DRY, "force": "true"}
        request = Request("PATCH", path, query, msgspec.json.encode(body), APPLY_PATCH)
        return await self.send(request, kind)

    async def raw(self, kind: Kind, key: Key) -> Object | None:
        """The whole object; None if it does not exist."""
        try:
            return await self.send(Request("GET", path_of(kind, *key)), kind, key)
        except NotFound:
            return None

    async def send(self, request: Request, kind: Kind, key: Key | None = None) -> Object:
        """Send a request about a kind or one of its objects; the JSON of the answer."""
        return decoded(await once(self.transport, request, kind, key), kind, key)

    def _report(self, error: DecodeError) -> None:
        text = str(error)
        if text not in self.unreadable:
            self.unreadable[text] = None
            warn(f"left out: {text}")


def decoded(body: bytes | msgspec.Raw, kind: Kind, key: Key | None) -> Object:
    """The JSON of an object.

    Raises: DecodeError.
    """
    try:
        return msgspec.json.decode(body, type=Object)
    except UNREADABLE as error:
        raise DecodeError(kind, key, str(error)) from error
