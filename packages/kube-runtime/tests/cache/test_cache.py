"""Finding objects, and what is refused."""

import weakref

import pytest

from kube_runtime.cache.store import Cache, Change, Store
from kube_runtime.cache.watch import Changed, Removed, Selector
from kube_runtime.kind import Key
from kube_runtime.types.kinds import Service
from kube_runtime.types.meta import Metadata, OwnerReference, Resource
from simulated.caches import a_store
from simulated.gadget import Gadget, GadgetSpec


def a_gadget(
    name: str, *, namespace: str = "default", version: str = "1", owners: tuple[str, ...] = ()
) -> Gadget:
    references = tuple(OwnerReference(kind="Owner", name="o", uid=uid) for uid in owners)
    metadata = Metadata(
        name=name,
        namespace=namespace,
        uid=f"uid-of-{name}",
        resource_version=version,
        owner_references=references,
    )
    return Gadget(metadata=metadata, spec=GadgetSpec(size=1))


def a_cache(*gadgets: Gadget) -> tuple[Cache, Store[Gadget]]:
    store = a_store(Gadget, gadgets)
    return Cache([store]), store


def test_objects_are_found_by_key_and_by_namespace() -> None:
    a, b = a_gadget("a", namespace="one"), a_gadget("b", namespace="two")
    cache, _ = a_cache(a, b)
    assert a is cache.get(Gadget, Key("one", "a"))
    assert cache.get(Gadget, Key("one", "b")) is None
    assert [b] == list(cache.list(Gadget, "two"))
    assert [] == list(cache.list(Gadget, "three"))
    assert [a, b] == list(cache.list(Gadget))


def test_objects_are_found_by_each_of_their_owners() -> None:
    shared, single = a_gadget("shared", owners=("x", "y")), a_gadget("single", owners=("x",))
    cache, store = a_cache(shared, single)
    assert [shared, single] == cache.owned_by("x", [Gadget])
    assert [shared] == cache.owned_by("y", [Gadget])
    left = a_gadget("shared", version="2", owners=("y",))
    store.on_watch_event(Changed(left))
    assert [single] == cache.owned_by("x", [Gadget])
    assert [left] == cache.owned_by("y", [Gadget])
    store.on_watch_event(Removed(left.key, left.metadata.uid))
    assert [] == cache.owned_by("y", [Gadget])


def test_a_reader_may_go_on_reading_while_the_cache_changes() -> None:
    cache, store = a_cache(a_gadget("a"), a_gadget("b"))
    seen = []
    for each in cache.list(Gadget):
        seen.append(each.metadata.name)
        store.on_watch_event(Changed(a_gadget(f"{each.metadata.name}-child")))
    assert ["a", "b"] == seen


def test_a_type_that_is_not_watched_never_looks_empty() -> None:
    cache, _ = a_cache()
    with pytest.raises(LookupError, match="Service is not watched"):
        cache.get(Service, Key("default", "a"))
    with pytest.raises(LookupError, match="Service is not watched"):
        cache.owned_by("x", [Gadget, Service])
    assert not cache.serves(Service)
    assert not cache.holds(Service)
    assert cache.serves(Gadget)


def test_a_type_is_watched_once() -> None:
    cache, store = a_cache()
    with pytest.raises(ValueError, match="Gadget is watched twice"):
        cache.add(store)


def test_a_late_subscriber_hears_of_what_is_there() -> None:
    gadget = a_gadget("a")
    cache, _ = a_cache(gadget)
    seen: list[Change[Gadget]] = []
    cache.subscribe(Gadget, seen.append)
    assert [Change(None, gadget, initial=True)] == seen


def test_who_asked_gets_the_uids_of_objects_that_are_gone() -> None:
    gadget, deleted = a_gadget("a"), list[str]()
    cache, store = a_cache(gadget)
    cache.subscribe_deleted(Gadget, deleted.append)
    assert [] == deleted
    store.on_watch_event(Removed(gadget.key, gadget.metadata.uid))
    assert [gadget.metadata.uid] == deleted


def test_an_object_is_reduced_before_it_is_stored() -> None:
    def without_spec(gadget: Gadget) -> Gadget:
        return Gadget(metadata=gadget.metadata)

    store = Store(Gadget, transform=without_spec)
    store.on_watch_event(Changed(a_gadget("a")))
    kept = store.shown.get(Key("default", "a"))
    assert kept is not None
    assert GadgetSpec() == kept.spec


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        ("", {}, True),
        ("a=1", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a!=1", {}, True),
        ("a!=1", {"a": "1"}, False),
        ("a", {"a": ""}, True),
        ("!a", {"a": ""}, False),
        ("example.com/a=1, b", {"example.com/a": "1", "b": "2"}, True),
        ("a=1,b", {"a": "1"}, False),
        ("a=", {"a": ""}, True),
    ],
)
def test_a_label_selector_says_what_its_watch_will_bring(
    selector: str, labels: dict[str, str], expected: bool
) -> None:
    resource = Resource(metadata=Metadata(labels=labels))
    assert expected is Selector(labels=selector).covers(resource, is_watched=False)


@pytest.mark.parametrize("selector", ["a in (1,2)", "a notin (b)", "a>1 b", ",", "=a"])
def test_a_label_selector_that_is_not_understood_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match="unsupported label selector"):
        Selector(labels=selector)


def test_a_namespace_and_a_field_selector_bound_what_a_watch_will_bring() -> None:
    resource = Resource(metadata=Metadata(namespace="one"))
    assert Selector(namespace="one").covers(resource, is_watched=False)
    assert not Selector(namespace="two").covers(resource, is_watched=False)
    assert not Selector(fields="type=x").covers(resource, is_watched=False)
    assert Selector(fields="type=x").covers(resource, is_watched=True)


def test_what_is_derived_from_all_objects_is_computed_when_one_has_changed_and_only_then() -> None:
    cache, store = a_cache(a_gadget("a"))
    looks: list[int] = []

    def names() -> tuple[str, ...]:
        looks.append(1)
        return tuple(sorted(each.metadata.name for each in cache.list(Gadget)))

    def derived() -> tuple[str, ...]:
        return cache.derived("names", (Gadget,), names)

    assert (("a",), ("a",)) == (derived(), derived())
    store.on_watch_event(Changed(a_gadget("a", version="2")))
    assert ("a",) == derived()
    assert 1 == len(looks), "another version alone does not count as a change"
    store.on_watch_event(Changed(a_gadget("b")))
    assert ("a", "b") == derived()
    store.on_watch_event(Removed(Key("default", "a"), "uid-of-a"))
    assert ("b",) == derived()


def test_what_was_derived_from_objects_that_have_changed_is_not_kept() -> None:
    class Value:
        """An object whose garbage collection can be observed."""

    cache, store = a_cache()
    names = [f"namespace-{number}" for number in range(100)]
    kept = [weakref.ref(cache.derived(each, (Gadget,), Value)) for each in names]
    assert all(each() for each in kept)
    store.on_watch_event(Changed(a_gadget("b")))
    cache.derived(names[0], (Gadget,), Value)
    assert not any(each() for each in kept)


def test_who_names_an_owner_in_another_namespace_is_not_among_what_it_owns() -> None:
    own = a_gadget("a", namespace="one", owners=("x",))
    cache, _ = a_cache(own, a_gadget("b", namespace="two", owners=("x",)))
    assert [own] == cache.owned_by("x", [Gadget], "one")
