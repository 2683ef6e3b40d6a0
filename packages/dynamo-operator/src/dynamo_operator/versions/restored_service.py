"""What a saved service of v1alpha1 adds to the one that a component became.

A piece comes back where the component still says what the piece was converted to, or has no field for it.
"""

from typing import Final

from dynamo_operator.versions.containers import (
    PROBES,
    SIDECAR,
    Place,
    comparable,
    containers_of,
    mounts_of,
    named,
    place_of,
    secret_of,
)
from dynamo_operator.versions.pod_template import has_content, main_container, needs_template
from dynamo_operator.versions.quantities import is_zero
from dynamo_operator.versions.resources import comparable_resources, container_resources
from dynamo_operator.versions.service_pods import cache_of, entry_place, is_cache, split
from kube_runtime.types.meta import Fields, Object

ONLY_V1ALPHA1: Final = (
    "subComponentType",
    "dynamoNamespace",
    "autoscaling",
    "ingress",
    "annotations",
    "labels",
)
"""Fields of a service that v1beta1 has no place for."""
SWITCHES: Final = ("scalingAdapter", "gpuMemoryService", "failover", "checkpoint")
"""Fields of a service that are absent in v1beta1 when they are switched off."""


def restore(service: Object, component: Fields, saved: Fields) -> None:
    """Add to a converted service what was saved of it."""
    main, _ = split(containers_of(component.get("podTemplate", {})))
    _restore_caches(service, component, main, saved)
    for field in ONLY_V1ALPHA1:
        if field in saved:
            service.setdefault(field, saved[field])
    _restore_shared_memory(service, component, saved)
    if main is not None:
        _restore_resources(service, main, saved)
    _restore_secret(service, saved, has_main=main is not None)
    if saved.get("extraPodMetadata") == {}:
        service.setdefault("extraPodMetadata", {})
    _restore_extra_pod_spec(service, saved)
    if main is not None and "mainContainer" in saved.get("extraPodSpec", {}):
        _restore_origins(service, saved)
    if main is not None:
        _restore_mounts(service, component, main, saved)
    for field in SWITCHES:
        if field in saved and not saved[field].get("enabled"):
            service.setdefault(field, saved[field])
    _tidy(service, saved)


def _restore_caches(service: Object, component: Fields, main: Object | None, saved: Fields) -> None:
    """Several compilation caches: v1beta1 has a field for the first, and mounts of `main` for the others."""
    caches = [entry for entry in saved.get("volumeMounts", []) if is_cache(entry)]
    if len(caches) <= 1 or entry_place(caches[0]) != _cache_place(component):
        return
    first, *others = caches
    places = {place_of(mount) for mount in mounts_of(main)}
    has_no_pods = main is None and not needs_template(saved)
    kept = [first, *(entry for entry in others if has_no_pods or entry_place(entry) in places)]
    kept_places = {entry_place(entry) for entry in kept}
    rest = [entry for entry in service.get("volumeMounts", []) if entry_place(entry) not in kept_places]
    service["volumeMounts"] = [*kept, *rest]


def _restore_shared_memory(service: Object, component: Fields, saved: Fields) -> None:
    if (memory := saved.get("sharedMemory")) is None:
        return
    live = component.get("sharedMemorySize")
    is_none_mounted = live is not None and is_zero(live)
    if is_none_mounted if memory.get("disabled") else live is None:
        service["sharedMemory"] = memory


def _restore_resources(service: Object, main: Object, saved: Fields) -> None:
    if "resources" not in saved:
        return
    converted = comparable_resources(container_resources(saved["resources"]))
    if converted == comparable_resources(main.get("resources", {})):
        service["resources"] = saved["resources"]


def _restore_secret(service: Object, saved: Fields, *, has_main: bool) -> None:
    secret = saved.get("envFromSecret")
    if secret == "":
        service["envFromSecret"] = ""
    elif secret is not None and has_main:
        extra = service.get("extraPodSpec", {})
        container = extra.get("mainContainer", {})
        if secret_of(container.get("envFrom", [])) == secret:
            service["envFromSecret"] = secret
            _set_main(service, "envFrom", None)


def _restore_extra_pod_spec(service: Object, saved: Fields) -> None:
    extra = saved.get("extraPodSpec")
    if extra is None:
        return
    if not has_content(extra):
        service.setdefault("extraPodSpec", extra)
    sidecar = named(extra.get("containers", []), SIDECAR)
    if sidecar is not None and "frontendSidecar" in saved:
        live = service.get("extraPodSpec", {})
        containers = live.get("containers", [])
        if named(containers, SIDECAR) is None:
            service["extraPodSpec"] = {**live, "containers": [*containers, sidecar]}


# Where a value of `main` came from: each has a field of the service and one of `mainContainer`.

PAIRS: Final = (
    ("envs", "env"),
    ("envFromSecret", "envFrom"),
    ("resources", "resources"),
    ("volumeMounts", "volumeMounts"),
    *((probe, probe) for probe in PROBES),
)
"""The fields of a service and of its `mainContainer` that become one field of `main`."""


def _restore_origins(service: Object, saved: Fields) -> None:
    saved_main = saved["extraPodSpec"]["mainContainer"]
    live, old = (comparable(main_container(either)) for either in (service, saved))
    for field, inner in PAIRS:
        if field not in saved and inner not in saved_main:
            continue
        if inner == "volumeMounts":
            continue  # in `_restore_mounts`
        if inner == "envFrom":
            if live.get(inner) == old.get(inner) and "envFromSecret" in saved:
                service["envFromSecret"] = saved["envFromSecret"]
        elif live.get(inner) == old.get(inner):
            _set(service, field, saved.get(field))
            _set_main(service, inner, saved_main.get(inner))
    if "name" in saved_main and "mainContainer" in service.get("extraPodSpec", {}):
        main = service["extraPodSpec"]["mainContainer"]
        service["extraPodSpec"] = {
            **service["extraPodSpec"],
            "mainContainer": {"name": saved_main["name"], **main},
        }


def _restore_mounts(service: Object, component: Fields, main: Object, saved: Fields) -> None:
    """Which mounts of `main` are of its container and which of the service, and in which order."""
    extra = saved.get("extraPodSpec", {})
    entries, saved_entries = service.get("volumeMounts", []), saved.get("volumeMounts", [])
    mounts, saved_inner = mounts_of(main), mounts_of(extra.get("mainContainer"))
    if saved_entries == entries and not saved_inner:
        return
    inner, places = mounts[: len(saved_inner)], [*map(place_of, mounts)]
    cache = _cache_place(component)
    visible = [place for place in map(entry_place, saved_entries) if place != cache or place in places]
    is_same_order = places == [*map(place_of, saved_inner), *visible]
    if is_same_order and cache_of(saved_entries) == cache:
        restored = saved_entries
    elif "mainContainer" in extra and _plain_places([], entries) == _plain_places(saved_inner, saved_entries):
        live = {place_of(mount): mount for mount in reversed(mounts)}
        inner = [live.get(place_of(mount), mount) for mount in saved_inner]
        restored = _merged_entries(saved_entries, entries, {*map(place_of, inner)})
    else:
        return
    _set(service, "volumeMounts", restored or None)
    _set_main(service, "volumeMounts", inner or None)


def _merged_entries(saved: list[Object], live: list[Object], inner: set[Place]) -> list[Object]:
    """The saved entries but for caches, then live ones that neither they nor the container has."""
    result = {entry_place(entry): entry for entry in saved if not is_cache(entry)}
    known = inner | result.keys()
    for entry in live:
        if is_cache(entry) or entry_place(entry) not in known:
            result[entry_place(entry)] = entry
    return [*result.values()]


def _cache_place(component: Fields) -> Place | None:
    cache = component.get("compilationCache")
    return None if cache is None else Place(cache.get("pvcName", ""), cache.get("mountPath", ""))


def _plain_places(inner: list[Object], entries: list[Object]) -> list[Place]:
    """Where `main` mounts anything but a compilation cache."""
    caches = {entry_place(entry) for entry in entries if is_cache(entry)}
    places = [*map(place_of, inner), *map(entry_place, entries)]
    return [place for place in places if place not in caches]


def _set(target: Object, field: str, value: object) -> None:
    if value is None:
        target.pop(field, None)
    else:
        target[field] = value


def _set_main(service: Object, field: str, value: object) -> None:
    extra = {**service.get("extraPodSpec", {})}
    main = {**extra.get("mainContainer", {})}
    if value is None and field not in main:
        return
    _set(main, field, value)
    service["extraPodSpec"] = {**extra, "mainContainer": main}


def _tidy(service: Object, saved: Fields) -> None:
    """Remove what holds nothing any more, unless it held nothing when it was saved."""
    extra = service.get("extraPodSpec")
    if extra is None:
        return
    saved_extra = saved.get("extraPodSpec")
    held_nothing = saved_extra is not None and not has_content(saved_extra)
    if extra.get("mainContainer") == {} and not (held_nothing and "mainContainer" in (saved_extra or {})):
        extra = {name: value for name, value in extra.items() if name != "mainContainer"}
        service["extraPodSpec"] = extra
    if not extra and not held_nothing:
        del service["extraPodSpec"]
