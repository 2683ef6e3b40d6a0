"""The fields of a v1alpha1 service that a pod template of v1beta1 becomes."""

from collections.abc import Sequence
from typing import Final

from dynamo_operator.versions.containers import (
    MAIN,
    PROBES,
    SIDECAR,
    Place,
    containers_of,
    mounts_of,
    name_of,
    secret_of,
)
from dynamo_operator.versions.resources import service_resources
from kube_runtime.types.meta import Fields, Object

_OWN_FIELDS: Final = frozenset({"name", "resources", "env", "volumeMounts", *PROBES})
"""The fields of `main` that a service has fields for."""
_POD_METADATA: Final = ("annotations", "labels")


def service_pods(component: Fields, saved: Fields) -> Object:
    """The fields of a service that a component's pod template and sidecar become."""
    cache = component.get("compilationCache")
    mounts = [_cache_mount(cache)] if cache is not None else []
    template = component.get("podTemplate")
    is_sidecar_saved = component.get("frontendSidecar") == SIDECAR and "frontendSidecar" in saved
    if template is None:
        sidecar = {"frontendSidecar": saved["frontendSidecar"]} if is_sidecar_saved else {}
        return {**sidecar, **({"volumeMounts": mounts} if mounts else {})}
    service: Object = {}
    if metadata := {
        name: template["metadata"][name] for name in _POD_METADATA if name in template.get("metadata", {})
    }:
        service["extraPodMetadata"] = metadata
    main, others = split(containers_of(template))
    if is_sidecar_saved:
        sidecars = [container for container in others if name_of(container) == SIDECAR]
        others = [container for container in others if name_of(container) != SIDECAR]
        service["frontendSidecar"] = _sidecar(sidecars, saved["frontendSidecar"])
    extra = {name: value for name, value in template.get("spec", {}).items() if name != "containers"}
    if others:
        extra["containers"] = others
    if main is not None:
        service.update(_main_fields(main))
        mounts = _with_plain_mounts(mounts, main)
        if rest := {name: value for name, value in main.items() if name not in _OWN_FIELDS}:
            extra["mainContainer"] = rest
    if extra:
        service["extraPodSpec"] = extra
    if mounts:
        service["volumeMounts"] = mounts
    return service


def split(containers: list[Object]) -> tuple[Object | None, list[Object]]:
    """The first container named `main`, and the others."""
    for index, container in enumerate(containers):
        if name_of(container) == MAIN:
            return container, [*containers[:index], *containers[index + 1 :]]
    return None, containers


def service_mount(mount: Fields) -> Object:
    """The entry of a service's `volumeMounts` that stands for a container's mount."""
    names = {"name": "name", "mountPath": "mountPoint"}
    return {names[name]: value for name, value in mount.items() if name in names}


def _cache_mount(cache: Fields) -> Object:
    names = {"pvcName": "name", "mountPath": "mountPoint"}
    return {**{names[name]: value for name, value in cache.items()}, "useAsCompilationCache": True}


def _with_plain_mounts(mounts: list[Object], main: Fields) -> list[Object]:
    """The mounts with those of the container; one that is there already is not repeated."""
    result = [*mounts]
    present = {entry_place(mount) for mount in mounts}
    for mount in map(service_mount, mounts_of(main)):
        if entry_place(mount) not in present:
            present.add(entry_place(mount))
            result.append(mount)
    return result


def entry_place(entry: Fields) -> Place:
    """Where an entry of a service's `volumeMounts` is mounted."""
    return Place(entry.get("name", ""), entry.get("mountPoint", ""))


def cache_of(entries: Sequence[Fields]) -> Place | None:
    """Where a service mounts its first compilation cache."""
    return next((entry_place(entry) for entry in entries if is_cache(entry)), None)


def is_cache(entry: Fields) -> bool:
    """Whether an entry of a service's `volumeMounts` is a compilation cache."""
    return bool(entry.get("useAsCompilationCache"))


def _main_fields(main: Fields) -> Object:
    fields: Object = {probe: main[probe] for probe in PROBES if probe in main}
    if resources := service_resources(main.get("resources", {})):
        fields["resources"] = resources
    if env := main.get("env"):
        fields["envs"] = env
    return fields


def _sidecar(sidecars: list[Object], saved: Object) -> Object:
    if not sidecars:
        return saved
    (sidecar, *_) = sidecars
    secret = secret_of(sidecar.get("envFrom", []))
    if secret is None and saved.get("envFromSecret") == "":
        secret = ""
    fields = {
        "image": sidecar.get("image"),
        "args": sidecar.get("args"),
        "envs": sidecar.get("env"),
        "envFromSecret": secret,
    }
    return {name: value for name, value in fields.items() if value is not None}
