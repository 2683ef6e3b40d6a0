"""What is saved of a service of v1alpha1, because a component of v1beta1 cannot hold it."""

from typing import Final

from dynamo_operator.versions.containers import PROBES, SIDECAR, mounts_of, named, place_of
from dynamo_operator.versions.pod_template import has_content, survive_or_absent
from dynamo_operator.versions.quantities import is_zero
from dynamo_operator.versions.restored_service import ONLY_V1ALPHA1, PAIRS, SWITCHES
from dynamo_operator.versions.service_pods import entry_place, is_cache
from kube_runtime.types.meta import Fields, Object

_ALWAYS: Final = (
    *(field for field in ONLY_V1ALPHA1 if field != "subComponentType"),
    "envFromSecret",
    "frontendSidecar",
)
_SPLIT: Final = frozenset({"name", "env", "resources", "volumeMounts", *PROBES})
"""Fields of a `mainContainer` that a service has a place for, too."""


def saved_service(service: Fields, component: Fields, *, saves_origins: bool) -> Object:
    """The part of a service to be saved; empty if there is none.

    `saves_origins`: also where values of `main` came from if nothing else has to be saved.
    """
    saved: Object = {field: service[field] for field in _ALWAYS if field in service}
    is_promoted = component.get("type") != service.get("componentType")
    if "subComponentType" in service and not is_promoted:
        saved["subComponentType"] = service["subComponentType"]
    if not survive_or_absent(service):
        saved["resources"] = service["resources"]
    if _are_mounts_saved(service):
        saved["volumeMounts"] = service["volumeMounts"]
    if "sharedMemory" in service and _is_shared_memory_saved(service["sharedMemory"]):
        saved["sharedMemory"] = service["sharedMemory"]
    if service.get("extraPodMetadata") == {}:
        saved["extraPodMetadata"] = {}
    if "extraPodSpec" in service and _is_extra_pod_spec_saved(service):
        saved["extraPodSpec"] = service["extraPodSpec"]
    saved.update(
        {field: service[field] for field in SWITCHES if field in service and _is_off(service, field)}
    )
    main = service.get("extraPodSpec", {}).get("mainContainer")
    if main is not None and (saves_origins or saved or not _SPLIT.isdisjoint(main)):
        _save_origins(saved, service, main)
    return saved


def _is_off(service: Fields, field: str) -> bool:
    return field != "checkpoint" and not service[field].get("enabled")


def _are_mounts_saved(service: Fields) -> bool:
    """Whether mounts would come back in another order, or fewer of them.

    The one cache of v1beta1 comes back first, and what is mounted twice at one place comes back once.
    """
    entries = service.get("volumeMounts", [])
    inner = mounts_of(service.get("extraPodSpec", {}).get("mainContainer"))
    places = [*map(place_of, inner), *map(entry_place, entries)]
    return any(map(is_cache, entries[1:])) or (bool(entries) and len({*places}) < len(places))


def _is_shared_memory_saved(memory: Fields) -> bool:
    has_size = "size" in memory and not is_zero(memory["size"])
    return has_size if memory.get("disabled") else not has_size


def _is_extra_pod_spec_saved(service: Fields) -> bool:
    extra = service["extraPodSpec"]
    has_sidecar = named(extra.get("containers", []), SIDECAR) is not None
    return not has_content(extra) or (has_sidecar and "frontendSidecar" in service)


def _save_origins(saved: Object, service: Fields, main: Fields) -> None:
    """Save both fields of each that became one field of `main`."""
    saved_main: Object = {**saved.get("extraPodSpec", {}).get("mainContainer", {})}
    is_any = False
    for field, inner in PAIRS:
        if field in service:
            saved[field] = service[field]
        if inner in main:
            saved_main[inner] = main[inner]
        is_any = is_any or field in service or inner in main
    if "name" in main:
        saved_main["name"] = main["name"]
    if is_any or saved_main:
        saved["extraPodSpec"] = {**saved.get("extraPodSpec", {}), "mainContainer": saved_main}
