"""A connection to a cluster, its objects, and the object that an action is about."""

import re
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

import msgspec

from dynamo_operator import FIELD_MANAGER, user_agent
from dynamo_operator.component.api import GROUP, LATER, ComponentSpec, DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import Stated
from dynamo_operator.shared.problems import nearest
from kube_runtime.client.client import APPLY_PATCH, Client, Request, Transport, once
from kube_runtime.client.connect import connect
from kube_runtime.client.kubeconfig import Overrides, default_namespace
from kube_runtime.errors import ApiError, Conflict, DecodeError, Forbidden, NotFound, OperatorError, visible
from kube_runtime.types.meta import Key, Kind, Object, R, Resource, from_json, key_of
from kube_runtime.wire import UNREADABLE, key_in, path_of

S = TypeVar("S", bound=Stated)
T = TypeVar("T")

NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
"""A name that the API server accepts."""
NAME_IN_WORDS = "lower-case letters, digits, - and ."
"""What such a name consists of, for messages."""

MANAGER = "dynamoctl"
"""The field manager of what a person applies or edits."""

GRAPHS = (DynamoGraphDeployment,)
STATED: tuple[type[Stated], ...] = get_args(Stated)
CONVERTED = tuple(type_ for type_ in STATED if type_ is not DynamoModel)
"""The kinds with two versions."""
NOUNS: Mapping[type[Resource], str] = {
    DynamoGraphDeployment: "graph",
    DynamoComponentDeployment: "component",
    DynamoGraphDeploymentScalingAdapter: "scaling adapter",
    DynamoModel: "model",
    DynamoGraphDeploymentRequest: "request",
}

_ATTEMPTS = 5
_DRY = {"dryRun": "All", "fieldManager": FIELD_MANAGER}
_FORCED = {"fieldManager": FIELD_MANAGER, "force": "true"}


async def retry_on_conflict(
    attempt: Callable[[], Awaitable[T]], ensure_retryable: Callable[[Conflict], None] = lambda _: None
) -> T:
    """Read an object and write what follows from it, again if it changes between the two, at most five times.

    `ensure_retryable` raises what ends it at once. Raises: Conflict if every attempt met another writer.
    """
    for attempts_left in reversed(range(_ATTEMPTS)):
        try:
            return await attempt()
        except Conflict as error:
            ensure_retryable(error)
            if not attempts_left:
                raise
    raise AssertionError("the last attempt returns or raises")


def warn(text: str) -> None:
    """Write a warning to stderr."""
    sys.stderr.write(f"warning: {visible(text)}\n")


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

    `namespace` is the chosen one, else that of the context. `unreadable` are the objects that lists left out,
    in words; a warning names each of them once. `later` are the kinds that are served in v1beta1, too.
    """

    def __init__(self, transport: Transport, namespace: str = "") -> None:
        self.transport = transport
        self.namespace = namespace
        self.unreadable: dict[str, None] = {}
        self.later: set[Kind] = set()
        self.client = Client(transport, field_manager=FIELD_MANAGER, waits=False)

    async def learn_versions(self) -> None:
        """Learn which kinds are served in v1beta1, and read those that are stored in it in that version.

        The API server reads the stored version without the conversion webhook, so also while no operator
        runs.
        """
        try:
            discovered = await self.client.get_json("apis", GROUP, LATER)
        except (NotFound, Forbidden):
            return
        entries = {entry["name"]: entry for entry in discovered["resources"]}
        self.later = {type_.KIND for type_ in CONVERTED if type_.KIND.plural in entries}
        stored = [
            kind for kind in self.later if entries[kind.plural].get("storageVersionHash") == _hash(kind)
        ]
        if stored:
            from dynamo_operator.process.stored_versions import TwoVersions

            self.client.translations = {kind: TwoVersions(kind) for kind in stored}

    async def all(
        self, type_: type[R], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[R]:
        """Every object of a kind that fits its type; an empty namespace means all."""
        objects: list[R] = []
        async for page in self.client.pages(type_, namespace=namespace, labels=labels, fields=fields):
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

    async def all_raw(
        self, kind: Kind, namespace: str, *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """Every object of a kind in its version; an empty namespace means all."""
        return await self.documents(kind, namespace, kind.version, labels=labels, fields=fields)

    async def documents(
        self, kind: Kind, namespace: str, version: str = "", *, labels: str = "", fields: str = ""
    ) -> list[Object]:
        """The same in that version, by default v1beta1 if it is served."""
        bodies: list[Object] = []
        head = {"apiVersion": self.client.stored(kind).api_version, "kind": kind.name}
        async for page in self.client.raw_pages(kind, namespace, labels, fields):
            for item in page.items or []:
                try:
                    body = self.shown(kind, head | decoded(item, kind, key_in(item)), version)
                except DecodeError as error:
                    self._report(error)
                else:
                    bodies.append(body)
        return bodies

    async def document(self, kind: Kind, key: Key, version: str = "") -> Object | None:
        """The whole object in that version, by default v1beta1 if it is served; None if it does not exist."""
        body = await self.raw(self.client.stored(kind), key)
        return body and self.shown(kind, body, version)

    def serves(self, kind: Kind, version: str) -> bool:
        """Whether the cluster serves a kind in a version, as far as that is known."""
        return version == kind.version or (version == LATER and kind in self.later)

    def served_version(self, kind: Kind) -> str:
        """The version in which people read a kind: v1beta1 if the cluster serves it."""
        return LATER if kind in self.later else kind.version

    def shown(self, kind: Kind, body: Object, version: str = "") -> Object:
        """An object in that version, by default v1beta1 if it is served.

        Raises: DecodeError if it cannot be converted.
        """
        wanted = f"{kind.group}/{version or self.served_version(kind)}"
        if kind.group != GROUP or body["apiVersion"] == wanted:
            return body
        from dynamo_operator.versions.conversion import convert
        from dynamo_operator.versions.shapes import ConversionError

        try:
            return convert(body, wanted)
        except ConversionError as error:
            raise DecodeError(kind, key_of(body), str(error)) from error

    async def tried(self, kind: Kind, body: Object) -> str:
        """Dry-run the creation of an object; the error of the API server, "" if it accepts it."""
        path = path_of(kind, key_of(body).namespace)
        try:
            await self.send(Request("POST", path, _DRY, msgspec.json.encode(body)), kind)
        except ApiError as error:
            return str(error)
        return ""

    async def applied(self, kind: Kind, body: Object) -> Object:
        """Dry-run a forced apply of the operator; the object as it would be."""
        return await self.patched(kind, key_of(body), body, APPLY_PATCH, is_dry=True, **_FORCED)

    async def patched(
        self, kind: Kind, key: Key, patch: Object, media_type: str, *, is_dry: bool, **query: str
    ) -> Object:
        """Patch an object as the field manager of people, unless `query` has another; the result."""
        whole = {"fieldManager": MANAGER, **query, **({"dryRun": "All"} if is_dry else {})}
        request = Request("PATCH", path_of(kind, *key), whole, msgspec.json.encode(patch), media_type)
        return await self.send(request, kind, key)

    async def raw(self, kind: Kind, key: Key) -> Object | None:
        """The whole object in the version of the kind; None if it does not exist."""
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


def _hash(kind: Kind) -> str:
    """The hash with which an API server names the stored version, if that is v1beta1.

    Source: `StorageVersionHash` of k8s.io/apiserver v0.36.
    """
    return b64encode(sha256(f"{kind.group}/{LATER}/{kind.name}".encode()).digest()[:8]).decode()


def decoded(body: bytes | msgspec.Raw, kind: Kind, key: Key | None) -> Object:
    """The JSON of an object. Raises: DecodeError."""
    try:
        return from_json(body, Object)
    except UNREADABLE as error:
        raise DecodeError(kind, key, str(error)) from error


class Missing(OperatorError):
    """An object, its kind, or a part of it does not exist."""


class Namespace(Resource):
    """A namespace; only whether it exists matters."""

    KIND = Kind("", "v1", "Namespace", "namespaces", namespaced=False)


@asynccontextmanager
async def connected(
    namespace: str = "", context: str = "", kubeconfig: Path | None = None, overrides: Overrides | None = None
) -> AsyncIterator[Reading]:
    """Connect to a cluster as kubectl finds it. Raises: OperatorError without usable credentials."""
    connecting = connect(kubeconfig, context or None, overrides=overrides, user_agent=user_agent())
    async with await connecting as transport:
        reading = Reading(transport, namespace or await default_namespace(transport))
        await reading.learn_versions()
        yield reading


@dataclass(frozen=True, slots=True)
class Target(Generic[S]):
    """An object of a cluster: its type and key."""

    reading: Reading
    type_: type[S]
    key: Key

    async def get(self) -> S:
        """The object.

        Raises: Missing if it does not exist; the message suggests similar names or names a missing namespace.
        """
        try:
            return await self.reading.client.get(self.type_, self.key)
        except NotFound as error:
            if (error.details or {}).get("name") == self.key.name:
                hint = await self._hint()
                raise Missing(f"{self.missing()}{hint}") from None
            raise not_served(self.type_) from None

    async def raw(self, version: str = "") -> Object:
        """The whole object in that version, by default v1beta1 if it is served. Raises: Missing, as `get`."""
        body = await self.reading.document(self.type_.KIND, self.key, version)
        if body is None:
            await self.get()  # raises with a hint
            raise self.missing()
        return body

    def missing(self) -> Missing:
        """The error for an object that does not exist."""
        return Missing(f"{NOUNS[self.type_]} {self.key.name} not found in namespace {self.key.namespace}")

    async def _hint(self) -> str:
        """A hint at what the user may have meant; "" if nothing is similar or visible to the user."""
        name, namespace = self.key.name, self.key.namespace
        kind = stored_type(self.type_.KIND)
        text = await absent_namespace(self.reading, namespace)
        every: list[StoredObject] = []
        for place in ("", *(() if text else (namespace,))):
            with suppress(Forbidden):
                every = await self.reading.all(kind, namespace=place)
                break
        beside = sorted({it.metadata.name for it in every if it.metadata.namespace == namespace})
        elsewhere = [str(it.key) for it in every if it.metadata.name == name]
        if elsewhere:
            return f"{text}; there is {', '.join(sorted(elsewhere)[:3])}"
        return f"{text}{nearest(name, beside)}"


def not_served(type_: type[Resource], version: str = "") -> Missing:
    """The error for a kind that the cluster does not serve, or not in a version."""
    what = f"{type_.KIND} in {version}" if version else f"{type_.KIND}"
    return Missing(f"{what} is not served; `dynamoctl check` reports what is")


async def absent_namespace(reading: Reading, namespace: str) -> str:
    """`: namespace NAME does not exist`; "" if it exists or the user may not read it."""
    with suppress(ApiError):  # only a hint; the error that led here is reported either way
        if await reading.one(Namespace, Key("", namespace)) is None:
            return f": namespace {namespace} does not exist"
    return ""


def service_of(graph: DynamoGraphDeployment, name: str) -> ComponentSpec:
    """The service of that name.

    Raises: Missing if the graph has none; the message names those that it has.
    """
    services = graph.spec.services
    if name not in services:
        listing = f" (services: {', '.join(sorted(services))})" if services else ""
        hint = nearest(name, services) or listing
        raise Missing(f'graph {graph.key}: service "{name}" not found{hint}')
    return services[name]


async def served_groups(client: Client) -> set[str]:
    """The API groups of the cluster; "" is the core group."""
    answer = await client.get_json("apis")
    return {"", *(group["name"] for group in answer["groups"])}


async def served_kind(reading: Reading, document: Object) -> Kind | None:
    """The kind of an object, in its version; None if that is not served."""
    group, _, version = document["apiVersion"].rpartition("/")
    path = ("apis", group, version) if group else ("api", version)
    try:
        resources = (await reading.client.get_json(*path))["resources"]
    except NotFound:
        return None
    for resource in resources:
        if resource["kind"] == document["kind"] and "/" not in resource["name"]:
            return Kind(group, version, resource["kind"], resource["name"], namespaced=resource["namespaced"])
    return None
