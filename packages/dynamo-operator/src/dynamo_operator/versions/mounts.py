"""Mounts: those of a container, and the entries of a service's `volumeMounts` that become some of them.

An entry can be a compilation cache. v1beta1 has a field for one cache, which is a mount of `main`, too.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from dynamo_operator.versions.parts import present, renamed, reversed_names
from kube_runtime.types.meta import Fields, Object

_ENTRY_NAMES: Final = {"name": "name", "mountPath": "mountPoint"}
_CACHE: Final = "useAsCompilationCache"
_MOUNT_NAMES: Final = reversed_names(_ENTRY_NAMES)


class Place(NamedTuple):
    """Where a volume is mounted; it tells the mounts of a container apart."""

    volume: str
    path: str


def place_of(mount: Fields) -> Place:
    """The place of a container's mount."""
    return Place(mount.get("name", ""), mount.get("mountPath", ""))


def entry_place(entry: Fields) -> Place:
    """The place of an entry of `volumeMounts`."""
    return Place(entry.get("name", ""), entry.get("mountPoint", ""))


def mounts_of(container: Fields | None) -> list[Object]:
    """The mounts of a container, if there is one."""
    mounts: list[Object] = (container or {}).get("volumeMounts", [])
    return mounts


def inner_mounts(service: Fields) -> list[Object]:
    """The mounts of a service's `mainContainer`."""
    return mounts_of(service.get("extraPodSpec", {}).get("mainContainer"))


def entries_of(service: Fields) -> list[Object]:
    """The `volumeMounts` of a service."""
    entries: list[Object] = service.get("volumeMounts", [])
    return entries


def mount_of(entry: Fields) -> Object:
    """The mount of a container that an entry stands for."""
    return renamed(entry, _MOUNT_NAMES)


def is_cache(entry: Fields) -> bool:
    """Whether an entry is a compilation cache."""
    return bool(entry.get(_CACHE))


def cache_of(service: Fields) -> Place | None:
    """Where a service mounts its first compilation cache."""
    return next((entry_place(entry) for entry in entries_of(service) if is_cache(entry)), None)


def cache_place(component: Fields) -> Place | None:
    """Where a component mounts its compilation cache."""
    cache = component.get("compilationCache")
    return None if cache is None else Place(cache.get("pvcName", ""), cache.get("mountPath", ""))


def entries_from(component: Fields, main: Fields | None) -> list[Object]:
    """The entries that the cache and the mounts of `main` become: the cache first, and each place once."""
    cache = cache_place(component)
    entries: dict[Place, Object] = {}
    if cache is not None:
        place = present(name=cache.volume, mountPoint=cache.path)
        entries[cache] = {**place, _CACHE: True}
    for mount in mounts_of(main):
        entries.setdefault(place_of(mount), renamed(mount, _ENTRY_NAMES))
    return [*entries.values()]


def come_back(service: Fields) -> bool:
    """Whether the entries of a service come back from a component, in their order and as they are."""
    entries = entries_of(service)
    is_first_plain = bool(entries) and not is_cache(entries[0])
    flagged = [entry for entry in entries[0 if is_first_plain else 1 :] if _CACHE in entry]
    places = [*map(place_of, inner_mounts(service)), *map(entry_place, entries)]
    return not flagged and len({*places}) == len(places)


def with_saved_caches(
    entries: list[Object], component: Fields, main: Fields | None, saved: Sequence[Object], *, has_pods: bool
) -> list[Object]:
    """The entries with saved caches after the first, where the component still mounts them.

    `has_pods`: whether the saved service has a pod template, in which other caches would be visible.
    """
    caches = [entry for entry in saved if is_cache(entry)]
    if len(caches) <= 1 or entry_place(caches[0]) != cache_place(component):
        return entries
    first, *others = caches
    places = {*map(place_of, mounts_of(main))}
    is_hidden = main is None and not has_pods
    kept = [first, *(entry for entry in others if is_hidden or entry_place(entry) in places)]
    kept_places = {*map(entry_place, kept)}
    return [*kept, *(entry for entry in entries if entry_place(entry) not in kept_places)]


class Split(NamedTuple):
    """The mounts of `main`: those of the service, and those of its `mainContainer`."""

    entries: list[Object]
    inner: list[Object]


def saved_split(entries: list[Object], component: Fields, main: Fields, saved: Fields) -> Split | None:
    """How saved entries and mounts divide those of `main`; None if they say nothing of them.

    If `main` mounts them all, in their order, the entries are as they were saved, else those of both.
    """
    mounts, saved_entries, saved_inner = mounts_of(main), entries_of(saved), inner_mounts(saved)
    if saved_entries == entries and not saved_inner:
        return None
    saved_places = [*map(place_of, saved_inner), *map(entry_place, saved_entries)]
    if saved_places == [*map(place_of, mounts)] and cache_of(saved) == cache_place(component):
        return Split(saved_entries, mounts[: len(saved_inner)])
    has_container = "mainContainer" in saved.get("extraPodSpec", {})
    if has_container and _plain(map(place_of, mounts), entries) == _plain(saved_places, saved_entries):
        live = {place_of(mount): mount for mount in reversed(mounts)}
        inner = [live.get(place_of(mount), mount) for mount in saved_inner]
        return Split(_of_both(saved_entries, entries, {*map(place_of, inner)}), inner)
    return None


def _plain(places: Iterable[Place], entries: Sequence[Object]) -> list[Place]:
    """The places without those where an entry is a compilation cache."""
    caches = {entry_place(entry) for entry in entries if is_cache(entry)}
    return [place for place in places if place not in caches]


def _of_both(saved: Sequence[Object], live: Sequence[Object], inner: set[Place]) -> list[Object]:
    """The saved entries but for caches, then live ones that neither they nor the container has."""
    result = {entry_place(entry): entry for entry in saved if not is_cache(entry)}
    known = inner | result.keys()
    for entry in live:
        if is_cache(entry) or entry_place(entry) not in known:
            result[entry_place(entry)] = entry
    return [*result.values()]


class Lookup:
    """The mounts of a container by their place, or by a volume that is mounted once."""

    def __init__(self, mounts: Sequence[Object]) -> None:
        self._at = {place_of(mount): mount for mount in reversed(mounts)}
        counts = Counter(mount.get("name", "") for mount in mounts)
        self._only = {name: mount for mount in mounts if counts[name := mount.get("name", "")] == 1}

    def like(self, mount: Fields) -> Object | None:
        """The mount at the same place, or else the only one of the same volume."""
        return self._at.get(place_of(mount)) or self._only.get(mount.get("name", ""))


def with_options(mounts: Sequence[Object], earlier: Sequence[Object], cache: Place | None) -> list[Object]:
    """Mounts that stem from entries, with the options that earlier mounts had, such as `readOnly`.

    A cache comes first among them. If it did not earlier, and nothing changed, the earlier order returns.
    """
    lookup = Lookup(earlier)
    completed = [{**(lookup.like(mount) or {}), **mount} for mount in mounts]
    places, earlier_places = [*map(place_of, completed)], [*map(place_of, earlier)]
    cache_first = [cache, *(place for place in earlier_places if place != cache)]
    if places == cache_first:
        at = dict(zip(places, completed, strict=True))
        return [at[place] for place in earlier_places]
    return completed
