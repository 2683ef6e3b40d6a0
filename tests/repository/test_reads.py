"""Every watched kind is in the table of bounds, and no object of a user fills the cache."""

import base64
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from dynamo_legacy.names import GraphConfigMap, SharedSecret
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.process.scope import informers, scope_of
from dynamo_operator.settings import RenderSettings, Settings
from dynamo_operator.shared.cluster import PullSecret
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.watch import Broken, Changed
from kube_runtime.client.client import Client
from kube_runtime.errors import TooLarge
from kube_runtime.types.kinds import CustomResourceDefinition, EndpointSlice
from kube_runtime.types.meta import Key, Metadata, Object
from kube_runtime.wire import decode
from simulated.server import Server

PAGE = Path(__file__).parents[2] / "docs/decisions/0065-every-read-has-a-bound.md"
SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="system")
NAMED = {"name": "fat", "namespace": "lab", "uid": "uid-of-the-fat-object", "resourceVersion": "1"}
MIB = 1024 * 1024
KEPT_BYTES = 16 * 1024
"""In memory, of an object of a user that no object of ours owns."""

OF_OURS = 2 * MIB
MOST_BYTES: dict[type, int] = {
    DynamoModel: 10 * MIB,  # endpoints, as many as etcd stores
    EndpointSlice: MIB,
    GraphConfigMap: 2 * MIB + KEPT_BYTES,  # of all in a namespace
    SharedSecret: 2 * MIB + KEPT_BYTES,
}
OF_SERVER = (*NAMED, "generation", "creationTimestamp", "deletionTimestamp")
"""Metadata that the API server sets or checks."""


def watched() -> list[Informer[Any]]:
    """The informers of a cluster-wide operator, that of the marker Leases too."""
    return [*informers(SETTINGS, with_legacy_kinds=True), *scope_of(Client(Server()), Settings()).informers]


def test_the_table_has_every_watched_kind() -> None:
    table = PAGE.read_text("utf-8").partition("| watched ")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(informer.type_.__name__ for informer in watched()) == sorted(listed)


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


def fat(info: inspect.Type, seen: tuple[type, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Values of a type that have a megabyte in one text, list or map, with its path."""
    match info:
        case inspect.StrType():
            yield "", "x" * 1_000_000
        case inspect.RawType() | inspect.AnyType():
            yield "", {"a": "x" * 1_000_000}
            yield "{}", {str(number): {} for number in range(50_000)}
        case inspect.DictType():
            yield "{}", {str(number): least(info.value_type) for number in range(50_000)}
            yield "{x}", {"x" * 1_000_000: least(info.value_type)}
            yield from ((f".a{path}", {"a": value}) for path, value in fat(info.value_type, seen))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            yield "[]", [least(item)] * 50_000
            yield from ((f"[0]{path}", [value]) for path, value in fat(item, seen))
        case inspect.UnionType():
            for member in info.types:
                yield from fat(member, seen)
        case inspect.StructType(cls=cls) if cls not in seen:
            for field in info.fields:
                if not (issubclass(cls, Metadata) and len(seen) == 1 and field.encode_name in OF_SERVER):
                    for path, value in fat(field.type, (*seen, cls)):
                        yield f".{field.encode_name}{path}", {**least(info), field.encode_name: value}


def fat_objects(type_: type[Any]) -> Iterator[tuple[str, Object]]:
    """Objects of a type, each with a megabyte at one path."""
    values = [*fat(inspect.type_info(type_))]
    if type_ is PullSecret:
        for path, auths in fat(inspect.type_info(dict[str, dict[str, str]])):
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


@pytest.mark.parametrize("informer", OF_USERS, ids=lambda informer: informer.type_.__name__)
def test_an_object_of_a_user_costs_little(informer: Informer[Any]) -> None:
    type_ = informer.type_
    most = MOST_BYTES.get(type_, OF_OURS if type_.__module__.endswith(".api") else KEPT_BYTES)
    costs: dict[str, int] = {}
    for path, body in fat_objects(type_):
        text = msgspec.json.encode(body)
        try:
            informer.store.on_watch_event(Changed(decode(type_, text, informer._most_bytes)))
        except TooLarge as error:
            informer.store.on_watch_event(Broken(error))
            if error.__traceback__ or error.__context__:  # they would keep the text
                costs[path] = len(text)
            continue
        kept = informer.store.shown.get(Key("lab", "fat"))
        assert kept is not None, path
        costs[path] = memory(kept, set())
    assert {} == {path: size for path, size in costs.items() if size > most}
