"""Between the API server's bytes and our types: URL paths, and JSON that is decoded unless it is too large.

`msgspec.Raw` is a view: one field of one object would keep a whole page of a list in memory. So every Raw in
a decoded object is replaced by a copy.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final, NewType, Protocol
from urllib.parse import quote, unquote

import msgspec
from msgspec import Raw, inspect, structs

from kube_runtime.errors import DecodeError, Invalid, TooLarge
from kube_runtime.types.meta import Key, Kind, Object, R, Resource, Struct, decoder_of

UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of msgspec for JSON that does not fit the type, is not UTF-8, or is nested too deeply."""

UNLIMITED: Final = 0


class Translation(Protocol):
    """Between the version in which the API server stores a kind, and the one of our types.

    Requests for the stored version need no conversion webhook, which may be ours and not run yet.
    """

    @property
    def stored(self) -> Kind:
        """The kind in its stored version."""
        ...

    def read(self, raw: bytes | Raw) -> bytes | Raw:
        """An object in the version of our types, as JSON text. Raises: ValueError."""
        ...

    def written(self, body: Object) -> Object:
        """An object to be created or applied, in the stored version. Raises: ValueError."""
        ...

    def patch(self, patch: Object) -> Object:
        """A JSON merge patch, in the stored version. Raises: ValueError."""
        ...

    def pointer(self, live: Resource, path: Sequence[str]) -> tuple[str, list[Object]]:
        """The JSON pointer of a field in the stored version, and the tests that it is still that field."""
        ...


def decode(
    type_: type[R],
    raw: bytes | Raw,
    most_bytes: int = UNLIMITED,
    translation: Translation | None = None,
    decoded: R | None = None,
) -> R:
    """Decode one object, which `translation` turns into the version of the type.

    `decoded` is what the same state of it was decoded to before; then only the limits are checked.

    The result has no reference to `raw`.

    Raises:
        TooLarge: the object has more than `most_bytes`, or with a limit too many annotations or too large a
            status.
        DecodeError: the JSON does not fit the type, or cannot be translated.
    """
    try:
        if most_bytes != UNLIMITED and bytes_over(raw, most_bytes):
            # Without the size, which reports of it in the status change: each would cause another.
            text = f"the object has more than {most_bytes} bytes"
            raise TooLarge(type_.KIND, key_in(raw), text)
        if decoded is None:
            if translation is not None and not type_.METADATA_ONLY:
                raw = translation.read(raw)
            try:
                decoded = decoder_of(type_).decode(raw)
            except RecursionError:
                if type_.READ_LEVELS is None or memoryview(raw).nbytes > MOST_SCANNED_BYTES:
                    raise
                decoded = decoder_of(type_).decode(shallow(raw, type_.READ_LEVELS))
            _detach(decoded)
        if most_bytes != UNLIMITED and (text := _uncounted_over(decoded, raw)):
            raise TooLarge(type_.KIND, decoded.key, text)
    except (*UNREADABLE, ValueError) as error:
        raise DecodeError(type_.KIND, key_in(raw), str(error)) from error
    return decoded


def decode_items(
    type_: type[R], items: list[Raw], most_bytes: int = UNLIMITED, translation: Translation | None = None
) -> tuple[list[R], list[DecodeError]]:
    """Decode the objects of a list, with an error for each one that does not fit its type or is too large."""
    good: list[R] = []
    broken: list[DecodeError] = []
    for item in items:
        try:
            good.append(decode(type_, item, most_bytes, translation))
        except DecodeError as error:
            broken.append(error)
    return good, broken


class ListMetadata(Struct, frozen=True):
    """Metadata of a list; `continue_` is empty on the last page."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ObjectList(Struct, frozen=True):
    """One page of a list, its items still JSON text."""

    metadata: ListMetadata = ListMetadata()
    items: list[Raw] | None = None  # Go writes an empty slice as null


def decode_list(kind: Kind, raw: bytes) -> ObjectList:
    """Decode a list, its items as views into `raw`.

    Raises:
        DecodeError: this is not a list.
    """
    try:
        try:
            return _LIST.decode(raw)
        except RecursionError:
            # One item is nested too deeply even to be skipped. It fails alone, when it is decoded.
            frame = _LIST.decode(shallow(raw, levels=2))
            return structs.replace(frame, items=list(parts(raw, "items", level=3)))
    except UNREADABLE as error:
        raise DecodeError(kind, None, f"list: {error}") from error


_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[\]{}]', re.DOTALL)
"""A string or a bracket of JSON. Possessive, so that the time is linear for any text."""


def _spans(raw: bytes, level: int) -> Iterator[tuple[bytes, int, int]]:
    # The lists and objects that open at that level; the whole object is level 1. Each with the quoted name of
    # the outermost member that it is in. Linear in time, and without recursion.
    open_brackets = start = 0
    name = b""
    for token in _TOKEN.finditer(raw):
        match token.group():
            case b"[" | b"{":
                open_brackets += 1
                if open_brackets == level:
                    start = token.start()
            case b"]" | b"}":
                if open_brackets == level:
                    yield name, start, token.end()
                open_brackets -= 1
            case text if open_brackets == 1:
                name = text  # or the text of a member without brackets


def parts(raw: bytes | Raw, member: str, level: int) -> Iterator[Raw]:
    """The lists and objects that open at that level in a member of a JSON object, at any depth of nesting."""
    text = bytes(raw)
    quoted = f'"{member}"'.encode()
    return (Raw(text[start:end]) for name, start, end in _spans(text, level) if name == quoted)


def shallow(raw: bytes | Raw, levels: int) -> bytes:
    """JSON with null in place of what is nested more deeply than so many levels."""
    text, copied = bytes(raw), 0
    pieces: list[bytes] = []
    for _, start, end in _spans(text, levels + 1):
        pieces += text[copied:start], b"null"
        copied = end
    return b"".join((*pieces, text[copied:]))


MOST_SCANNED_BYTES: Final = 1 << 16
"""Of one object: the scanner takes up to 6 ms for them, and anyone who may write objects can cause it."""


class ObjectIdentity(Struct, frozen=True):
    """The metadata that identify an object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    deletion_timestamp: str | None = None
    annotations: Raw = Raw(b"")
    managed_fields: Raw = Raw(b"")


class _Frame(Struct, frozen=True):
    metadata: ObjectIdentity = ObjectIdentity()
    status: Raw = Raw(b"")


_LIST = decoder_of(ObjectList)
_FRAME = decoder_of(_Frame)
_IDENTITY = decoder_of(ObjectIdentity)


def identity(raw: bytes | Raw) -> ObjectIdentity:
    """The identity of an object; empty if it cannot be decoded."""
    try:
        try:
            return _FRAME.decode(raw).metadata
        except RecursionError:
            # The API server sorts the fields, so the metadata are at the start.
            start = bytes(memoryview(raw)[:MOST_SCANNED_BYTES])
            metadata = next(parts(start, "metadata", level=2), Raw(b"{}"))
            return _IDENTITY.decode(shallow(metadata, levels=1))
    except UNREADABLE:
        return ObjectIdentity()


def key_in(raw: bytes | Raw) -> Key | None:
    """The key of an object in JSON; None if it cannot be read."""
    metadata = identity(raw)
    return Key(metadata.namespace, metadata.name) if metadata.name else None


def bytes_over(text: bytes | Raw, most: int) -> int:
    """The size in bytes of an object with more than `most`, or `UNLIMITED`; 0 if it has fewer.

    The status and `metadata.managedFields`, which users do not write, do not count, nor do annotations, where
    kubectl keeps a second copy of the spec. Raises msgspec.DecodeError if a large text is not an object.
    """
    size = memoryview(text).nbytes
    if most == UNLIMITED or size <= most:
        return 0
    frame = _FRAME.decode(text)
    uncounted = (frame.metadata.managed_fields, frame.metadata.annotations, frame.status)
    size -= sum(memoryview(part).nbytes for part in uncounted)
    return size if size > most else 0


_MOST_ENTRIES = 1000


def _uncounted_over(resource: Resource, raw: bytes | Raw) -> str:
    # What `bytes_over` does not count. Anyone may write small annotations, which take 20 times their size in
    # memory, and some users may write a status. JSON text in it takes no more than it has in etcd.
    entries = (resource.metadata.annotations, getattr(resource.metadata, "managed_fields", ()))
    if sum(map(len, entries)) > _MOST_ENTRIES:
        return f"the object has more than {_MOST_ENTRIES} annotations and managed fields"
    status, most = getattr(resource, "status", None), resource.MOST_STATUS_BYTES
    if not isinstance(status, msgspec.Struct) or memoryview(raw).nbytes <= most:
        return ""
    texts = (getattr(status, name) for name in _fields_with_raw(type(status)))
    size = sum(memoryview(text).nbytes for text in texts if isinstance(text, Raw))
    is_over = len(msgspec.json.encode(status)) - size > most
    return f"the status has more than {most} bytes" if is_over else ""


def _detach(value: object) -> object:
    match value:
        case Raw():
            return value.copy()
        case msgspec.Struct():
            for name in _fields_with_raw(type(value)):
                # No other code has this object yet, so a frozen struct may be changed.
                structs.force_setattr(value, name, _detach(getattr(value, name)))
            return value
        case dict():
            return {key: _detach(member) for key, member in value.items()}
        case tuple():
            return tuple(_detach(item) for item in value)
        case list():
            return [_detach(item) for item in value]
    return value


@cache
def _fields_with_raw(type_: type[msgspec.Struct]) -> tuple[str, ...]:
    return tuple(
        field.name for field in structs.fields(type_) if _mentions_raw(inspect.type_info(field.type), {type_})
    )


def _mentions_raw(info: inspect.Type, seen: set[type]) -> bool:
    if isinstance(info, inspect.RawType):
        return True
    inner: Iterable[inspect.Type] = ()
    match info:
        case inspect.StructType(cls=cls) if cls not in seen:  # a type may contain itself
            seen = seen | {cls}
            inner = (field.type for field in info.fields)
        case inspect.DictType(value_type=item_type):
            inner = (item_type,)
        case inspect.VarTupleType(item_type=item_type) | inspect.ListType(item_type=item_type):
            inner = (item_type,)
        case inspect.TupleType(item_types=types) | inspect.UnionType(types=types):
            inner = types
    return any(_mentions_raw(nested, seen) for nested in inner)


UrlPath = NewType("UrlPath", str)
"""An absolute, quoted path, with a query if `proxied` added one."""

_BAD_REQUEST = 400
_DOTS = ("", ".", "..")
_WRITTEN = "/%:@!$&'()*+,;="
"""Characters that a URL may have as they are, besides the unreserved ones (RFC 3986, 3.3)."""


def url_path(*segments: str) -> UrlPath:
    """The path of these segments, each quoted.

    Raises:
        Invalid: no object can have such a name. A quoted slash would not help: the API server decodes it
            before it splits the path. Source: `IsValidPathSegmentName` in k8s.io/apimachinery.
    """
    for segment in segments:
        if segment in _DOTS or "/" in segment or "%" in segment:
            expected = 'expected a name without "/" and "%", for example "chat"'
            raise Invalid(_BAD_REQUEST, "InvalidName", f'invalid name "{segment}" ({expected})')
    return UrlPath("/" + "/".join(quote(segment, ":", errors="replace") for segment in segments))


def proxied(proxy: UrlPath, target: str) -> UrlPath:
    """The path of an object's proxy, followed by a path and query of what is behind it.

    Raises:
        Invalid: the target leads to another object of the API server.
    """
    path, mark, query = target.partition("?")
    segments = re.split("/|%2f", path, flags=re.IGNORECASE)
    if any(unquote(segment) in (".", "..") for segment in segments):
        raise Invalid(_BAD_REQUEST, "InvalidPath", f'invalid path "{target}" (expected no . and .. segments)')
    absolute = path if path.startswith("/") else f"/{path}"
    return UrlPath(f"{proxy}{quote(absolute, _WRITTEN)}{mark}{quote(query, _WRITTEN + '?')}")


def path_of(kind: Kind, namespace: str = "", name: str | None = None, subresource: str = "") -> UrlPath:
    """The path of a kind's collection (no name), of one object, or of its subresource.

    With an empty namespace, the collection in all namespaces.

    Raises:
        Invalid: no object can have that name, or be in that namespace.
    """
    root = ("apis", kind.group) if kind.group else ("api",)
    is_in_namespace = kind.namespaced and (namespace or name is not None)
    scope = ("namespaces", namespace) if is_in_namespace else ()
    rest = () if name is None else (name, subresource) if subresource else (name,)
    return url_path(*root, kind.version, *scope, kind.plural, *rest)


VALUE_BYTES = 128
"""About what a value takes in memory beside its text, as entry of a map, or item of a list."""


def bytes_in_memory(value: object) -> int:
    """About the bytes that a decoded value takes."""
    text = msgspec.json.encode(value)
    return len(text) + text.count(b",") * VALUE_BYTES
