"""Every watched kind is in the table of bounds, and no object of a user fills the cache."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dynamo_legacy.names import GraphConfigMap, SharedSecret
from dynamo_operator.models.api import DynamoModel
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.watch import Broken, Changed
from kube_runtime.errors import TooLarge
from kube_runtime.types.kinds import EndpointSlice
from kube_runtime.types.meta import Key
from kube_runtime.wire import decode
from specs.fat_objects import OF_USERS, fat_objects, memory, watched

PAGE = Path(__file__).parents[2] / "docs/decisions/0065-every-read-has-a-bound.md"
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


def test_the_table_has_every_watched_kind() -> None:
    table = PAGE.read_text("utf-8").partition("| watched ")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    listed = [name for cell in cells for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(informer.type_.__name__ for informer in watched()) == sorted(listed)


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
