"""What a saved service of v1alpha1 adds to the one that a component became.

A piece comes back where the component still says what the piece was converted to, or has no field for it.
"""

from typing import Final

from dynamo_operator.versions.containers import SIDECAR, containers_of, main_and_others, named, secret_of
from dynamo_operator.versions.mounts import entries_of, saved_split, with_saved_caches
from dynamo_operator.versions.origins import restore_origins, set_field, set_main_field
from dynamo_operator.versions.parts import present, some, without
from dynamo_operator.versions.pod_template import has_content, needs_template
from dynamo_operator.versions.quantities import is_same, is_zero
from dynamo_operator.versions.resources import comparable_resources, container_resources
from kube_runtime.types.meta import Fields, Object

ONLY_V1ALPHA1: Final = ("dynamoNamespace", "autoscaling", "ingress", "annotations", "labels")
"""Fields of a service that v1beta1 has no place for."""
WORKER: Final = "worker"
ROLES: Final = ("prefill", "decode")
"""Sub-types of a worker in v1alpha1, types in v1beta1."""
SWITCHES: Final = ("scalingAdapter", "gpuMemoryService", "failover")
"""Fields of a service that are absent in v1beta1 when they are switched off."""


def restore(service: Object, component: Fields, saved: Fields) -> None:
    """Add to a converted service what was saved of it."""
    main, _ = main_and_others(containers_of(component.get("podTemplate", {})))
    entries = with_saved_caches(
        entries_of(service), component, main, entries_of(saved), has_pods=needs_template(saved)
    )
    service.update(present(volumeMounts=entries))
    for field in ONLY_V1ALPHA1:
        if field in saved:
            service.setdefault(field, saved[field])
    if saved.get("componentType") in ROLES and saved["componentType"] == role_of(service):
        del service["subComponentType"]
        service |= some(saved, ["componentType", "subComponentType"])
    elif "subComponentType" in saved and role_of({**saved, **some(service, ["componentType"])}) is None:
        service.setdefault("subComponentType", saved["subComponentType"])
    if "sharedMemory" in saved and _is_same_memory(saved["sharedMemory"], component.get("sharedMemorySize")):
        service["sharedMemory"] = saved["sharedMemory"]
    if "resources" in saved and main is not None and _are_same_resources(saved["resources"], main):
        service["resources"] = saved["resources"]
    _restore_secret(service, saved.get("envFromSecret"), has_main=main is not None)
    if saved.get("extraPodMetadata") == {} and "podTemplate" in component:
        service.setdefault("extraPodMetadata", {})
    if "extraPodSpec" in saved:
        _restore_extra_pod_spec(service, saved)
    if main is not None:
        if "mainContainer" in saved.get("extraPodSpec", {}):
            restore_origins(service, saved)
        if split := saved_split(entries_of(service), component, main, saved):
            set_field(service, "volumeMounts", split.entries or None)
            set_main_field(service, "volumeMounts", split.inner or None)
    for field in SWITCHES:
        if field in saved and not saved[field].get("enabled"):
            service.setdefault(field, saved[field])
    if "extraPodSpec" in service:
        _tidy(service, saved.get("extraPodSpec"))


def role_of(service: Fields) -> str | None:
    """The sub-type of a service that is its type in v1beta1."""
    role: str | None = service.get("subComponentType")
    return role if service.get("componentType") == WORKER and role in ROLES else None


def _is_same_memory(saved: Fields, live: str | float | None) -> bool:
    """Whether the live size is what saved memory became: none if disabled, the default without a size."""
    if saved.get("disabled"):
        return live is not None and is_zero(live)
    size = saved.get("size", 0)
    return live is None if is_zero(size) else live is not None and is_same(live, size)


def _are_same_resources(saved: Object, main: Fields) -> bool:
    converted, live = container_resources(saved), main.get("resources", {})
    return converted == live or comparable_resources(converted) == comparable_resources(live)


def _restore_secret(service: Object, secret: str | None, *, has_main: bool) -> None:
    if secret == "":
        service["envFromSecret"] = ""
    elif secret is not None and has_main:
        container = service.get("extraPodSpec", {}).get("mainContainer", {})
        if secret_of(container.get("envFrom", [])) == secret:
            service["envFromSecret"] = secret
            set_main_field(service, "envFrom", None)


def _restore_extra_pod_spec(service: Object, saved: Fields) -> None:
    """Restore one that says nothing, and a container of its own beside a sidecar of the same name."""
    extra = saved["extraPodSpec"]
    if not has_content(extra):
        service.setdefault("extraPodSpec", extra)
    sidecar = named(extra.get("containers", []), SIDECAR)
    if sidecar is not None and "frontendSidecar" in saved:
        live = service.get("extraPodSpec", {})
        containers = live.get("containers", [])
        if named(containers, SIDECAR) is None:
            service["extraPodSpec"] = {**live, "containers": [*containers, sidecar]}


def _tidy(service: Object, saved: Fields | None) -> None:
    """Remove a container or pod spec that says nothing, unless it said nothing when it was saved."""
    extra = service["extraPodSpec"]
    said_nothing = saved is not None and not has_content(saved)
    if extra.get("mainContainer") == {} and not (said_nothing and "mainContainer" in (saved or {})):
        service["extraPodSpec"] = extra = without(extra, "mainContainer")
    if not extra and not said_nothing:
        del service["extraPodSpec"]
