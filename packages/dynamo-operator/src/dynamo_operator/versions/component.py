"""A service of v1alpha1 and a component of v1beta1, in both directions."""

from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions.containers import SIDECAR, containers_of, named
from dynamo_operator.versions.mounts import Place, cache_of
from dynamo_operator.versions.parts import present, reversed_names, some, without
from dynamo_operator.versions.pod_template import needs_template, pod_template, with_mount_paths
from dynamo_operator.versions.quantities import is_zero
from dynamo_operator.versions.restored_service import ROLES, WORKER, restore, role_of
from dynamo_operator.versions.restored_template import restored_template
from dynamo_operator.versions.service_pods import service_pods
from kube_runtime.types.meta import Fields, Object

_SWITCHED: Final = ("gpuMemoryService", "failover")
"""Fields with `enabled` in v1alpha1, whose presence is enough in v1beta1."""
_MODES: Final = {"intraPod": "IntraPod", "interPod": "InterPod"}
_MODES_BACK: Final = reversed_names(_MODES)


def component_of(service: Fields, name: str, earlier: Fields | None) -> Object:
    """The component of a service; `earlier` is the part of a component that the service could not hold."""
    earlier = earlier or {}
    component = {
        **some(service, common.COMPONENT),
        **present(
            name=name,
            type=role_of(service) or service.get("componentType"),
            sharedMemorySize=_memory_size(service),
        ),
    }
    cache = cache_of(service)
    if cache is not None:
        component["compilationCache"] = present(pvcName=cache.volume, mountPath=cache.path)
    if service.get("scalingAdapter", {}).get("enabled"):
        component["scalingAdapter"] = {}
    template = _template_of(service, earlier, cache)
    if template is not None:
        component["podTemplate"] = with_mount_paths(template) if cache and not cache.path else template
    if "frontendSidecar" in service:
        component["frontendSidecar"] = SIDECAR
    elif _is_sidecar_kept(earlier, template or {}):
        component["frontendSidecar"] = earlier["frontendSidecar"]
    experimental = _experimental_of(service, earlier.get("experimental"))
    if experimental is not None:
        component["experimental"] = experimental
    return component


def service_of(component: Fields, saved: Fields | None) -> Object:
    """The service of a component; `saved` is the part of a service that the component could not hold."""
    saved = saved or {}
    type_ = component.get("type")
    is_role = type_ in ROLES
    service = {
        **some(component, common.COMPONENT),
        **present(componentType=WORKER if is_role else type_, subComponentType=type_ if is_role else None),
    }
    if (size := component.get("sharedMemorySize")) is not None:
        service["sharedMemory"] = {"disabled": True} if is_zero(size) else {"size": size}
    if "scalingAdapter" in component:
        service["scalingAdapter"] = {"enabled": True}
    experimental = component.get("experimental", {})
    for block in _SWITCHED:
        if block in experimental:
            service[block] = {"enabled": True, **_with_mode(experimental[block], _MODES_BACK)}
    if "checkpoint" in experimental:
        service["checkpoint"] = {"enabled": False, **experimental["checkpoint"]}
    service.update(service_pods(component, saved))
    restore(service, component, saved)
    return service


def has_block(experimental: Fields) -> bool:
    """Whether v1alpha1 has a field for a part of `experimental`; if so, its presence need not be saved."""
    return any(block in experimental for block in (*_SWITCHED, "checkpoint"))


def _memory_size(service: Fields) -> str | float | None:
    memory = service.get("sharedMemory", {})
    if memory.get("disabled"):
        return "0"
    size: str | float | None = memory.get("size")
    return None if size is None or is_zero(size) else size


def _template_of(service: Fields, earlier: Fields, cache: Place | None) -> Object | None:
    if "podTemplate" in earlier:
        return restored_template(service, earlier["podTemplate"], cache)
    return pod_template(service) if needs_template(service) else None


def _is_sidecar_kept(earlier: Fields, template: Fields) -> bool:
    """Whether an earlier reference to a sidecar still has its container, or never had one."""
    if "frontendSidecar" not in earlier:
        return False
    name = earlier["frontendSidecar"]
    had_container = named(containers_of(earlier.get("podTemplate", {})), name) is not None
    return not had_container or named(containers_of(template), name) is not None


def _experimental_of(service: Fields, earlier: Fields | None) -> Object | None:
    blocks: Object = {
        block: _with_mode(without(service[block], "enabled"), _MODES)
        for block in _SWITCHED
        if service.get(block, {}).get("enabled")
    }
    if "checkpoint" in service:
        blocks["checkpoint"] = {"enabled": False, **service["checkpoint"]}
    return blocks or None if earlier is None else {**blocks, **some(earlier, ["grove"])}


def _with_mode(block: Object, words: dict[str, str]) -> Object:
    mode = block.get("mode")
    return block if mode is None else {**block, "mode": words.get(mode, mode)}
