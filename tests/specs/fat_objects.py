"""Objects of each watched type with much at one path, found by walking the types of the informers."""

import base64
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from dynamo_operator.process.scope import informers, scope_of
from dynamo_operator.settings import RenderSettings, Settings
from dynamo_operator.shared.cluster import PullSecret
from kube_runtime.cache.informer import Informer
from kube_runtime.client.client import Client
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Kind, Metadata, Object
from simulated.server import Server

SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="system")
NAMED = {"name": "fat", "namespace": "lab", "uid": "uid-of-the-fat-object", "resourceVersion": "1"}
OF_SERVER = (*NAMED, "generation", "creationTimestamp", "deletionTimestamp")
"""Metadata that the API server sets or checks."""


def watched() -> list[Informer[Any]]:
    """The informers of a cluster-wide operator, that of the marker Leases too."""
    return [*informers(SETTINGS, with_legacy_kinds=True), *scope_of(Client(Server()), Settings()).informers]


LEAST: dict[type, Any] = {inspect.StrType: "", inspect.IntType: 0, inspect.BoolType: False}


def least(info: inspect.Type) -> Any:
    """The smallest value of a type."""
    match info:
        case inspect.StructType():
            return {field.encode_name: least(field.type) for field in info.fields if field.required}
        case inspect.UnionType():
            return least(info.types[0])
        case inspect.LiteralType():
            return info.values[0]
        case inspect.VarTupleType() | inspect.ListType():
            return []
    return LEAST.get(type(info), {})


def fat(info: inspect.Type, letters: int, seen: tuple[type, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Values of a type that have so many letters in one text, list or map, with its path."""
    many = letters // 20
    match info:
        case inspect.StrType():
            yield "", "x" * letters
        case inspect.RawType() | inspect.AnyType():
            yield "", {"a": "x" * letters}
            yield "{}", {str(number): {} for number in range(many)}
        case inspect.DictType():
            yield "{}", {str(number): least(info.value_type) for number in range(many)}
            yield "{x}", {"x" * letters: least(info.value_type)}
            yield from ((f".a{path}", {"a": value}) for path, value in fat(info.value_type, letters, seen))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            yield "[]", [least(item)] * many
            yield from ((f"[0]{path}", [value]) for path, value in fat(item, letters, seen))
        case inspect.UnionType():
            for member in info.types:
                yield from fat(member, letters, seen)
        case inspect.StructType(cls=cls) if cls not in seen:
            for field in info.fields:
                if not (issubclass(cls, Metadata) and len(seen) == 1 and field.encode_name in OF_SERVER):
                    for path, value in fat(field.type, letters, (*seen, cls)):
                        yield f".{field.encode_name}{path}", {**least(info), field.encode_name: value}


def fat_objects(type_: type[Any], letters: int = 1_000_000) -> Iterator[tuple[str, Object]]:
    """Objects of a type, each with so many letters at one path."""
    values = [*fat(inspect.type_info(type_), letters)]
    if type_ is PullSecret:
        for path, auths in fat(inspect.type_info(dict[str, dict[str, str]]), letters):
            text = base64.b64encode(msgspec.json.encode({"auths": auths})).decode()
            values.append((f".auths{path}", {"data": {".dockerconfigjson": text}}))
    for path, value in values:
        own = {**NAMED, "resourceVersion": path}  # another one means that it has changed
        yield path, {**value, "metadata": {**value.get("metadata", {}), **own}}


def memory(value: Any, seen: set[int]) -> int:
    """Bytes that a decoded value takes, without what `seen` has."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    match value:
        case msgspec.Raw():
            return memoryview(value).nbytes
        case msgspec.Struct():
            parts: Any = (getattr(value, name) for name in value.__struct_fields__)
        case dict():
            parts = (part for item in value.items() for part in item)
        case tuple() | list():
            parts = value
        case _:
            return sys.getsizeof(value)
    return sys.getsizeof(value) + sum(memory(part, seen) for part in parts)


OF_USERS = [
    informer
    for informer in watched()
    # Some watches select one object of an administrator, and no tenant may create CRDs.
    if not (informer.selector.namespace and informer.selector.fields)
    and informer.type_ is not CustomResourceDefinition
]


def selected(informer: Informer[Any], body: Object, name: str, namespace: str) -> Object:
    """The object with a name, and the labels by which the operator selects it."""
    terms = [term.partition("=") for term in informer.selector.labels.split(",") if term[:1] not in ("", "!")]
    labels = {**body["metadata"].get("labels", {}), **{term: value or "x" for term, _, value in terms}}
    named = {"name": name, "namespace": namespace, "labels": labels}
    if "metadata.name=" in informer.selector.fields:  # one in each namespace
        own = informer.selector.fields.partition("=")[2]
        named |= {"name": own, "namespace": f"{namespace}-{name}"}
    kind: Kind = informer.type_.KIND
    whole = {"apiVersion": kind.api_version, "kind": kind.name, **body}
    return {**whole, "metadata": {**body["metadata"], **named}}
