"""Whose fields are whose after an earlier operator: the sets of fields, and the requests that it takes."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.apply.applier import Applier, Controlled
from kube_runtime.apply.writer import ManagedFieldsUpgrade, Writer, with_manager
from kube_runtime.kind import Object
from kube_runtime.types.meta import Metadata
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, NAMESPACE, Gadget, gadget, key
from simulated.world import a_world, settle

MARK = "example.com/earlier"
HASH = "example.com/hash"
GENERATION = "example.com/owner-generation"
OURS = "operator"
OWNER = Gadget(Metadata("owner", NAMESPACE, "owner-uid"))
BOOKS: Object = {"f:metadata": {"f:annotations": {f"f:{MARK}": {}}}}

Paths = frozenset[tuple[str, ...]]
names = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', 'v:"y"'])
paths = st.frozensets(st.lists(names, min_size=1, max_size=4).map(tuple), max_size=12)


def fields(members: Paths) -> Object:
    """A set of paths in the format FieldsV1."""
    result: dict[str, Any] = {}
    for path in sorted(members, key=len):
        at = result
        for name in path:
            at = at.setdefault(name, {})
    for path in members:
        at = result
        for name in path:
            at = at[name]
        if at:
            at["."] = {}
    return result


def members(found: Object, at: tuple[str, ...] = ()) -> Paths:
    """The paths of a set in the format FieldsV1."""
    result: set[tuple[str, ...]] = set()
    for name, inside in found.items():
        if name == ".":
            result.add(at)
        elif inside:
            result |= members(inside, (*at, name))
        else:
            result.add((*at, name))
    return frozenset(result)


def entry(manager: str, operation: str, owned: Object, **more: str) -> Object:
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": owned,
        **more,
    }


def with_books(owned: Paths) -> Object:
    return {**fields(owned), **copy.deepcopy(BOOKS)}


@given(paths)
def test_the_format_says_what_the_paths_say(owned: Paths) -> None:
    assert owned == members(fields(owned))


@given(paths, paths, paths, paths, st.booleans())
def test_what_the_earlier_operator_owned_is_ours_and_nothing_of_others_changes(
    first: Paths, second: Paths, ours: Paths, foreign: Paths, we_have_applied: bool
) -> None:
    others = [
        entry("kubectl-edit", "Update", fields(foreign)),
        entry("manager", "Update", fields(foreign), subresource="status"),
        entry("manager", "Update", fields(foreign), apiVersion="v2"),
        entry("manager", "Apply", fields(foreign)),
        entry("horizontal-pod-autoscaler", "Update", fields(foreign), subresource="scale"),
    ]
    own = [entry(OURS, "Apply", fields(ours))] if we_have_applied else []
    theirs = [
        entry("manager", "Update", with_books(first)),
        entry("manager", "Update", fields(second)),
    ]
    before = [*theirs, *others, *own]
    untouched = copy.deepcopy(before)
    after = with_manager(before, mark=MARK, manager=OURS)
    assert after is not None
    assert untouched == before
    (result,) = [each for each in after if each not in others]
    assert (OURS, "Apply", "v1") == (result["manager"], result["operation"], result["apiVersion"])
    wanted = members(with_books(first)) | second | (ours if we_have_applied else frozenset())
    assert wanted == members(result["fieldsV1"])
    assert all(each in after for each in others)
    assert len(others) + 1 == len(after)


@given(paths, paths)
def test_a_second_time_there_is_nothing_to_move(theirs: Paths, foreign: Paths) -> None:
    once = with_manager(
        [entry("manager", "Update", with_books(theirs)), entry("x", "Update", fields(foreign))],
        mark=MARK,
        manager=OURS,
    )
    assert once is not None
    assert with_manager(once, mark=MARK, manager=OURS) is None


@given(st.lists(paths, max_size=3))
def test_without_the_books_of_the_earlier_operator_nothing_moves(foreign: list[Paths]) -> None:
    entries = [entry(f"m{at}", "Update", fields(each)) for at, each in enumerate(foreign)]
    assert with_manager(entries, mark=MARK, manager=OURS) is None


def test_entries_in_a_format_that_we_do_not_know_stay() -> None:
    unknown = {**entry("manager", "Update", BOOKS), "fieldsType": "FieldsV2"}
    assert with_manager([unknown], mark=MARK, manager=OURS) is None


def earlier(name: str, size: int) -> Object:
    """A gadget of ours as the earlier operator has left it."""
    managed = [entry("manager", "Update", {**BOOKS, "f:spec": {"f:size": {}}})]
    made = gadget(name, size, annotations={MARK: "2"}, managedFields=managed)
    owner = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "owner"}
    made["metadata"]["ownerReferences"] = [{**owner, "uid": "owner-uid", "controller": True}]
    return made


@on_simulated_clock
async def test_an_object_is_taken_over_once_with_one_read_and_one_patch_before_the_apply() -> None:
    world = a_world()
    world.server.storage.create(GADGETS, earlier("a", 1))
    async with world.synced():
        writer = Writer(world.client, world.cache)
        take_over = ManagedFieldsUpgrade(writer, MARK)
        applier = Applier(writer, HASH, GENERATION, take_over)
        world.server.requests.clear()
        for size in (1, 1, 2):
            await applier.apply(OWNER, Controlled([gadget("a", size)], (Gadget,)))
            # The simulated server knows nothing of managers, so it leaves this in place.
            world.server.storage.merge(
                GADGETS, key("a"), {"metadata": {"annotations": {MARK: None}}}
            )
            await settle(0.1)
        requests = [(each.method, each.content_type) for each in world.server.requests]
        read, take, apply = (
            ("GET", "application/json"),
            ("PATCH", "application/merge-patch+json"),
            ("PATCH", "application/apply-patch+yaml"),
        )
        assert [read, take, apply, apply] == requests
        stored = world.server.storage.read(GADGETS, key("a"))["metadata"]["managedFields"]
        assert [(OURS, "Apply")] == [(each["manager"], each["operation"]) for each in stored]


@on_simulated_clock
async def test_what_we_made_ourselves_is_not_read_first() -> None:
    world = a_world()
    async with world.synced():
        writer = Writer(world.client, world.cache)
        take_over = ManagedFieldsUpgrade(writer, MARK)
        applier = Applier(writer, HASH, GENERATION, take_over)
        world.server.requests.clear()
        for size in (1, 2):
            await applier.apply(OWNER, Controlled([gadget("a", size)], (Gadget,)))
        assert ["PATCH", "PATCH"] == [each.method for each in world.server.requests]
