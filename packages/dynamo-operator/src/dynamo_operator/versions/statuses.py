"""Statuses of a graph and of its components, in both directions."""

from dynamo_operator.versions import common_fields as common
from kube_runtime.types.meta import Fields, Object


def component_status(service: Fields) -> Object:
    """The status of a component in v1beta1."""
    status = {field: service[field] for field in common.COMPONENT_STATUS if field in service}
    if names := service.get("componentNames") or [*filter(None, [service.get("componentName")])]:
        status["componentNames"] = names
    return status


def service_status(component: Fields, saved: Fields | None) -> Object:
    """The status of a service in v1alpha1. Saved names return if they convert to the live ones."""
    status = {field: component[field] for field in common.COMPONENT_STATUS if field in component}
    names = component.get("componentNames", [])
    if saved and names == component_status(saved).get("componentNames", []):
        status.pop("componentNames", None)
        return {**status, **saved_names(saved)}
    if names and names[-1]:
        status["componentName"] = names[-1]
    return status


def saved_names(service: Fields) -> Object:
    """The names in the status of a service that do not come back from those of v1beta1."""
    names = service.get("componentNames", [])
    if service.get("componentName", "") == (names[-1] if names else ""):
        return {}
    return {field: service[field] for field in ("componentName", "componentNames") if field in service}
