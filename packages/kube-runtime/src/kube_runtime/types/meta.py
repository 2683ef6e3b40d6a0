"""What all objects have: kind, key, metadata, conditions, content; quantities, and selectors."""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, DecimalException
from threading import Lock
from typing import (
    Any,
    ClassVar,
    Final,
    NamedTuple,
    Self,
    TypeAlias,
    TypedDict,
    TypeVar,
    cast,
    dataclass_transform,
)

import msgspec

T = TypeVar("T")

_DECODERS: dict[Any, msgspec.json.Decoder[Any]] = {}
_describing = Lock()


# msgspec describes a struct when it is first used, in Python code that other threads interrupt. Two threads
# that use one for the first time at once crash the process, so nothing else makes decoders or converts.
def decoder_of(type_: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of JSON text with a value of that type."""
    if type_ not in _DECODERS:
        with _describing:
            _DECODERS[type_] = msgspec.json.Decoder(type_)
    return _DECODERS[type_]


def from_json(text: bytes | bytearray | str | msgspec.Raw, type_: type[T]) -> T:
    """The value in JSON text. Raises msgspec.DecodeError, also for a value of another type."""
    return decoder_of(type_).decode(text)


def from_plain(value: object, type_: type[T]) -> T:
    """The value that plain JSON stands for. Raises msgspec.ValidationError."""
    decoder_of(type_)
    return msgspec.convert(value, type_)


Object: TypeAlias = dict[str, Any]
"""A Kubernetes object to be written, as plain JSON."""

Fields: TypeAlias = Mapping[str, Any]
"""The fields of a JSON object that is only read."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of the Kubernetes API: its group ("" is the core group), version, name, plural and scope.

    By default the plural is the name in lower case with an "s".
    """

    group: str
    version: str
    name: str
    plural: str = ""
    namespaced: bool = True
    api_version: str = field(init=False, compare=False)
    """The `apiVersion` of objects, such as `v1` or `apps/v1`."""

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)
        object.__setattr__(self, "plural", self.plural or f"{self.name.lower()}s")

    def manifest(self, metadata: Object, **fields: object) -> Object:
        """An object of this kind, to be written."""
        kind = {"apiVersion": self.api_version, "kind": self.name}
        return {**kind, "metadata": metadata, **fields}

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Key(NamedTuple):
    """Namespace and name of an object; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(body: Object) -> Key:
    """The key of a plain JSON object."""
    metadata = body["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])


# msgspec passes `frozen` on to subclasses, which type checkers do not know.
@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Struct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of all structs of API objects; names on the wire are camelCase."""


class OwnerReference(Struct):
    """One entry of `metadata.ownerReferences`."""

    kind: str
    name: str
    uid: str
    api_version: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None

    @property
    def group(self) -> str:
        """The API group of the owner. References may name another version of its kind than ours."""
        return self.api_version.rpartition("/")[0]

    def names_kind(self, kind: Kind) -> bool:
        """Whether the owner is of that kind, in any version."""
        return (self.group, self.kind) == (kind.group, kind.name)


class Metadata(Struct):
    """The part of ObjectMeta that is decoded. `ScaledMetadata` has `managedFields`, too."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def controller(self) -> OwnerReference | None:
        """The controlling owner, if there is one."""
        for owner in self.owner_references:
            if owner.controller:
                return owner
        return None

    def is_true(self, annotation: str) -> bool:
        """Whether the annotation is exactly "true"."""
        return self.annotations.get(annotation) == "true"


class _Present(Struct):
    """Nothing of a value, only that there is one."""


class _OwnedSpec(Struct):
    replicas: _Present | None = msgspec.field(name="f:replicas", default=None)


class _Owned(Struct):
    spec: _OwnedSpec = msgspec.field(name="f:spec", default=_OwnedSpec())


class FieldOwner(Struct):
    """One entry of `metadata.managedFields`: whether `spec.replicas` is among its fields."""

    manager: str = ""
    time: str | None = None
    fields_v1: _Owned | None = None


class ScaledMetadata(Metadata):
    """Metadata of a kind with a scale subresource, with the managers of `spec.replicas`."""

    managed_fields: tuple[FieldOwner, ...] = ()

    @property
    def replicas_set_by(self) -> str:
        """The field manager that set `spec.replicas` last; "" when there is none."""
        owners = [
            owner
            for owner in self.managed_fields
            if owner.fields_v1 and owner.fields_v1.spec.replicas is not None
        ]
        return max(owners, key=lambda owner: owner.time or "").manager if owners else ""


class Resource(Struct):
    """Base of all kinds. A subclass names its kind and declares the fields to decode."""

    KIND: ClassVar[Kind]
    METADATA_ONLY: ClassVar[bool] = False
    """Whether lists and watches request the metadata only."""
    READ_LEVELS: ClassVar[int | None] = None
    """How deep the fields are that we read; the object itself is level 1. An object that is nested too deeply
    for the decoder is then read down to here. None: such an object cannot be read."""

    MOST_STATUS_BYTES: ClassVar[int] = 256 * 1024
    """Of what is decoded of a status, without fields that stay JSON text."""

    metadata: Metadata = Metadata()

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.metadata.namespace, self.metadata.name)


R = TypeVar("R", bound=Resource)


# The garbage collector reads an owner in the version that the reference names. One that is not served finds
# no owner, so that nothing is deleted; one that is not stored needs a conversion webhook.
def owner_reference(kind: Kind, name: str, uid: str) -> Object:
    """A reference to an owner that is not the controller. `kind` is in its stored version."""
    return {"apiVersion": kind.api_version, "kind": kind.name, "name": name, "uid": uid}


def controller_reference(owner: Resource, kind: Kind) -> Object:
    """The reference that makes `owner` the controller of an object. `kind` is in its stored version."""
    flags = {"controller": True, "blockOwnerDeletion": True}
    return owner_reference(kind, owner.metadata.name, owner.metadata.uid) | flags


def metadata_type(type_: type[Resource]) -> type[Resource]:
    """A type of the same kind whose lists and watches request the metadata only."""
    reduced = msgspec.defstruct(
        f"{type_.__name__}Metadata",
        [],
        bases=(Resource,),
        namespace={"KIND": type_.KIND, "METADATA_ONLY": True},
        frozen=True,
        rename="camel",
    )
    return cast("type[Resource]", reduced)


class Condition(Struct):
    """One condition of a status. `last_transition_time` is RFC 3339, UTC, in whole seconds."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None
    observed_generation: int | None = None


class Status(Struct):
    """Base of a status with conditions. A subclass declares its other fields."""

    conditions: tuple[Condition, ...] = ()

    def with_conditions(self, conditions: Iterable[Condition]) -> Self:
        """A copy with these conditions. Subclasses add what their schema requires."""
        return msgspec.structs.replace(self, conditions=tuple(conditions))


def status_of(resource: Resource) -> Status:
    """The status of an object.

    Raises:
        TypeError: its kind has no status with conditions.
    """
    status = getattr(resource, "status", None)
    if not isinstance(status, Status):
        raise TypeError(f"{resource.KIND.name}: has no status with conditions")
    return status


def condition(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, if there is one."""
    for candidate in conditions:
        if candidate.type == type_:
            return candidate
    return None


def equal_but_for_version(old: Resource, new: Resource) -> bool:
    """Whether two states of an object are equal except for the resource version.

    The API server raises the version also for changes of fields that are not decoded.
    """
    version = old.metadata.resource_version
    metadata = msgspec.structs.replace(new.metadata, resource_version=version)
    return msgspec.structs.replace(new, metadata=metadata) == old


_LEAST = 80
"""Least length of a truncated text."""


def fitted(texts: Sequence[str], limit: int, *, between: str = "; ") -> str:
    """Join as many texts as fit into `limit` characters, then the number of the others.

    The first text that does not fit is truncated after a word, if enough of it is left.
    """
    whole = between.join(texts)
    if len(whole) <= limit:
        return whole
    kept: list[str] = []
    for at, text in enumerate(texts):
        more = _more(len(texts) - at - 1)
        room = limit - len(between.join((*kept, ""))) - len(more)
        if len(text) <= room:
            kept.append(text)
        elif room >= _LEAST or not kept:
            return between.join((*kept, cut(text, room))) + more
        else:
            return between.join(kept) + _more(len(texts) - at)
    return between.join(kept)


def cut(text: str, limit: int) -> str:
    """Truncate a text after a word, with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) >= len(head) // 2 else head).rstrip(" ,;:") + "…"


def _more(count: int) -> str:
    return f" (and {count} more)" if count else ""


# Source: `https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/`
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?", re.ASCII
)
_FACTOR = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** (power + 1) for power, suffix in enumerate("kMGTPE")},
    **{f"{suffix}i": Decimal(1024) ** (power + 1) for power, suffix in enumerate("KMGTPE")},
}
_MOST_DIGITS = 64
_EXACT = Context(prec=200)
_BOUND = Decimal(2) ** 63
"""The API server caps amounts at this value."""


def amount(quantity: str | int) -> Decimal | None:
    """The value in base units (cores, bytes, devices); None if it is invalid or out of range."""
    if isinstance(quantity, int):
        return Decimal(quantity) if abs(quantity) < _BOUND else None
    match = _QUANTITY.fullmatch(quantity)
    if match is None or max(len(match["number"]), len(match["suffix"] or "")) > _MOST_DIGITS:
        return None
    number, suffix = Decimal(match["number"]), match["suffix"] or ""
    try:
        if suffix[:1] in ("e", "E") and len(suffix) > 1 and suffix != "Ei":
            value = _EXACT.scaleb(number, int(suffix[1:]))
        else:
            value = _EXACT.multiply(number, _FACTOR.get(suffix, Decimal(1)))
    except DecimalException:
        return None
    return value if abs(value) < _BOUND else None


def is_same_amount(left: object, right: object) -> bool:
    """Whether two JSON values are equal quantities, such as `1000m` and 1."""
    if not isinstance(left, str | int) or not isinstance(right, str | int):
        return False
    value = amount(left)
    return value is not None and value == amount(right)


class SelectorQuery(TypedDict):
    """The arguments of `Client.pages` and `Client.watch`."""

    namespace: str
    labels: str
    fields: str


@dataclass(frozen=True, slots=True)
class LabelRule:
    """One requirement of a label selector; a value of None matches any."""

    name: str
    value: str | None
    is_negated: bool


# The API server selects. For an object that we have just written, the store must know whether the
# watch will bring it. So label selectors are parsed, and unsupported ones are refused. Field
# selectors are not parsed: such an object is shown once the watch brings it.
@dataclass(frozen=True, slots=True)
class Selector:
    """A namespace ("" for all), a label selector and a field selector.

    Raises:
        ValueError: the label selector has terms other than `a=b`, `a!=b`, `a` and `!a`.
    """

    namespace: str = ""
    labels: str = ""
    fields: str = ""
    rules: tuple[LabelRule, ...] = field(init=False)

    def __post_init__(self) -> None:
        terms = self.labels.split(",") if self.labels else ()
        object.__setattr__(self, "rules", tuple(map(_rule, terms)))

    def query(self) -> SelectorQuery:
        """The arguments for `Client.pages` and `Client.watch`."""
        return {"namespace": self.namespace, "labels": self.labels, "fields": self.fields}

    def covers(self, resource: Resource, *, is_watched: bool) -> bool:
        """Whether the watch will bring this state of an object; `is_watched`: it brought an earlier one."""
        metadata = resource.metadata
        if self.namespace and metadata.namespace != self.namespace:
            return False
        if self.fields and not is_watched:
            return False
        for rule in self.rules:
            value = metadata.labels.get(rule.name)
            matches = value is not None if rule.value is None else value == rule.value
            if matches is rule.is_negated:
                return False
        return True


def _rule(term: str) -> LabelRule:
    text = term.strip()
    is_negated = "!=" in text or text.startswith("!")
    name, equals, value = text.removeprefix("!").replace("!=", "=").replace("==", "=").partition("=")
    name, value = name.strip(), value.strip()
    if not name or any(letter in name + value for letter in " ()=!"):
        raise ValueError(f"unsupported label selector {term!r}")
    return LabelRule(name, value if equals else None, is_negated)


EVERYTHING = Selector()


def content(body: Object) -> Object:
    """What a desired object sets, without its name and preconditions."""
    return {**body, "metadata": _compared_metadata(body["metadata"])}


def content_of(live: Resource) -> Object:
    """A live object as plain JSON, without its status and the metadata of the API server."""
    body: Object = plain(live)
    body.pop("status", None)
    return {**body, **claims_of(live)}


def claims_of(live: Resource) -> Object:
    """The kind and the metadata of what `content_of` returns."""
    kind = {"apiVersion": live.KIND.api_version, "kind": live.KIND.name}
    return {**kind, "metadata": _compared_metadata(plain(live.metadata))}


def differ_in_size_only(before: Resource, after: Resource, *, but_for: Collection[str]) -> bool:
    """Whether two states of an object differ in `spec.replicas`, and in nothing else.

    The annotations `but_for` may differ.
    """
    old, new = content_of(before), content_of(after)
    sizes = [body.get("spec", {}).pop("replicas", None) for body in (old, new)]
    for body in (old, new):
        body["metadata"] = {**body["metadata"]}
        body["metadata"]["annotations"] = {
            name: value
            for name, value in body["metadata"].get("annotations", {}).items()
            if name not in but_for
        }
    return sizes[0] != sizes[1] and old == new


class Fingerprint(NamedTuple):
    """Hashes of what `content_of` returns: of its metadata, and of the rest."""

    metadata: bytes
    rest: bytes


def fingerprint_of(live: Resource) -> Fingerprint:
    """The hashes of a live object's content."""
    metadata = live.metadata
    claims = (metadata.labels, metadata.annotations, metadata.owner_references)
    rest = [getattr(live, name) for name in live.__struct_fields__ if name not in ("metadata", "status")]
    texts = map(msgspec.json.encode, (claims, rest))
    return Fingerprint(*(hashlib.blake2b(text, digest_size=16).digest() for text in texts))


def plain(value: object) -> Any:
    """A decoded value as plain JSON, with the defaults of structs and without None, for comparison."""
    if isinstance(value, msgspec.Raw):
        return msgspec.json.decode(value)
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        fields = {wire: plain(getattr(value, name)) for name, wire in names}
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    return msgspec.to_builtins(value)


def _compared_metadata(metadata: Object) -> Object:
    names = ("labels", "annotations", "ownerReferences")
    return {name: metadata[name] for name in names if name in metadata}


MESSAGE_LIMIT: Final = 1024
"""Characters of a message. The API server accepts 32,768; this leaves a listing readable."""


def new_condition(resource: Resource, type_: str, status: str, reason: str, message: str) -> Condition:
    """A condition that describes the newest spec of the object; a long message is cut."""
    generation = resource.metadata.generation
    return Condition(type_, status, reason, cut(message, MESSAGE_LIMIT), observed_generation=generation)
