"""The status of a component, in both directions."""

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions.parts import present, some, without
from kube_runtime.types.meta import Fields, Object


def component_status(service: Fields) -> Object:
    """The status of a component in v1beta1, which lists all workloads; a service may name the last one."""
    names = service.get("componentNames") or [*present(name=service.get("componentName")).values()]
    return {**some(service, common.COMPONENT_STATUS), **present(componentNames=names)}


def service_status(component: Fields, saved: Fields | None) -> Object:
    """The status of a service in v1alpha1. Saved names return if they convert to the live ones."""
    status = some(component, common.COMPONENT_STATUS)
    names = component.get("componentNames", [])
    if saved and names == component_status(saved).get("componentNames", []):
        return {**without(status, "componentNames"), **saved_names(saved)}
    return {**status, **present(componentName=names[-1] if names else None)}


def saved_names(service: Fields) -> Object:
    """The names in the status of a service that do not come back from those of v1beta1."""
    names = service.get("componentNames", [])
    if service.get("componentName", "") == (names[-1] if names else ""):
        return {}
    return some(service, ("componentName", "componentNames"))
