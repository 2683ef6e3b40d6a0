"""Every watched kind is in the table of bounds, and no object of a user fills the cache."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from dynamo_legacy.names import GraphConfigMap, SharedSecret
from dynamo_operator.process.scope import informers
from dynamo_operator.settings import RenderSettings
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.watch import Changed
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Key, Metadata, OwnerReference

PAGE = Path(__file__).parents[2] / "docs/decisions/0065-every-read-has-a-bound.md"
SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="system")
FORGED = OwnerReference("DynamoGraphDeployment", "chat", "u", "nvidia.com/v1alpha1", controller=True)
FAT = Metadata(
    "fat",
    "lab",
    "uid-of-the-fat-object",
    "1",
    labels={f"example.com/{number}": "x" for number in range(3000)},
    annotations={"a": "x" * 200_000, "b": "x" * 50_000},
    owner_references=(FORGED,) * 1000,
    finalizers=tuple(f"example.com/{number}" for number in range(3000)),
)
KEPT_BYTES = 20_000
ADMINISTRATORS = {CustomResourceDefinition}
"""Kinds that no tenant may create."""

PER_NAMESPACE = {GraphConfigMap, SharedSecret}
"""Kinds of users whose objects have no owner."""


def watched() -> list[Informer[Any]]:
    return informers(SETTINGS, with_legacy_kinds=True)


def test_the_table_has_every_watched_kind() -> None:
    table = PAGE.read_text("utf-8").partition("| watched ")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(informer.type_.__name__ for informer in watched()) == sorted(listed)


def fat(type_: type[Any]) -> Any:
    """An object with a megabyte in each field of text, in the metadata, and a forged owner."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(type_):
        match inspect.type_info(field.type):
            case inspect.RawType():
                values[field.name] = msgspec.Raw(b'{"a":"' + b"x" * 1_000_000 + b'"}')
            case inspect.DictType():
                values[field.name] = {"a": "x" * 1_000_000}
    return type_(**{**values, "metadata": FAT})


OF_USERS = [
    informer
    for informer in watched()
    # Objects of our kinds are bounded one by one; some watches select one object of an administrator.
    if not informer.type_.__module__.endswith(".api")
    and not (informer.selector.namespace and informer.selector.fields)
    and informer.type_ not in {*ADMINISTRATORS, *PER_NAMESPACE}
]


@pytest.mark.parametrize("informer", OF_USERS, ids=lambda informer: informer.type_.__name__)
def test_an_object_of_a_user_costs_little(informer: Informer[Any]) -> None:
    informer.store.on_watch_event(Changed(fat(informer.type_)))
    kept = informer.store.shown.get(Key("lab", "fat"))
    assert kept is not None
    assert len(msgspec.json.encode(kept)) < KEPT_BYTES


def test_objects_without_an_owner_are_bounded_per_namespace() -> None:
    for informer in watched():
        if informer.type_ not in PER_NAMESPACE:
            continue
        for number in range(20):
            thick = msgspec.structs.replace(fat(informer.type_), metadata=Metadata(f"n{number}", "lab"))
            informer.store.on_watch_event(Changed(thick))
        size = sum(len(msgspec.json.encode(it)) for it in informer.store.shown.list())
        assert size < 2 * 1024 * 1024 + 20 * 300
