"""DynamoComponentDeployment in both versions: one component, and its status."""

from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions import preserved, v1alpha1, v1beta1
from dynamo_operator.versions.component import component_of, service_of
from dynamo_operator.versions.preserved import Payload
from dynamo_operator.versions.saved_component import saved_component
from dynamo_operator.versions.saved_service import saved_service
from dynamo_operator.versions.statuses import component_status, saved_names, service_status
from kube_runtime.types.meta import Fields, Object

_KEYS: Final = preserved.keys_of("dcd")
_NAME: Final = "serviceName"
_EMPTY_NAME: Final = frozenset({_NAME})
_STATUS: Final = (*common.STATUS, "selector", "backendFramework")


def to_v1beta1(deployment: Fields) -> Object:
    """The deployment in v1beta1, without apiVersion and kind.

    Its component is named after the service, or after the object if the service has no name.
    """
    metadata = deployment.get("metadata", {})
    service = deployment.get("spec", {})
    earlier = preserved.saved_spec(metadata, _KEYS, v1beta1.COMPONENT_DEPLOYMENT_SPEC)
    own_name, object_name = service.get(_NAME, ""), metadata.get("name", "")
    name = own_name or object_name
    is_name_empty = not own_name and earlier is not None and "name" not in earlier.spec
    component = component_of(service, "" if is_name_empty else name, earlier.spec if earlier else None)
    if "backendFramework" in service:
        component["backendFramework"] = service["backendFramework"]
    saved = saved_service(service, component, saves_origins=earlier is None)
    is_defaulted = bool(not own_name and object_name and not is_name_empty)
    is_first = earlier is None and "podTemplate" in component
    payload = None
    if saved or is_defaulted or is_first:
        payload = Payload(saved, _EMPTY_NAME if is_defaulted else frozenset())
    live_status = deployment.get("status", {})
    status = {field: live_status[field] for field in _STATUS if field in live_status}
    saved_status: Object = {}
    if "service" in live_status:
        status["component"] = component_status(live_status["service"])
        if names := saved_names(live_status["service"]):
            saved_status["service"] = names
    if "podSelector" in live_status:
        saved_status["podSelector"] = live_status["podSelector"]
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status=saved_status)
    return {"metadata": metadata, "spec": component, **({"status": status} if status else {})}


def to_v1alpha1(deployment: Fields) -> Object:
    """The deployment in v1alpha1, without apiVersion and kind."""
    metadata = deployment.get("metadata", {})
    component = deployment.get("spec", {})
    is_first = not preserved.has_any(metadata, _KEYS)
    saved = preserved.saved_spec(metadata, _KEYS, v1alpha1.COMPONENT_DEPLOYMENT_SPEC)
    service = service_of(component, saved.spec if saved else None)
    remainder = saved_component(component, service)
    name, object_name = component.get("name", ""), metadata.get("name", "")
    is_defaulted = saved is not None and _NAME in saved.empty_paths and name == object_name
    if name and not is_defaulted:
        service[_NAME] = name
    if "backendFramework" in component:
        service["backendFramework"] = component["backendFramework"]
    payload = None
    if remainder or (not name and object_name) or (is_first and "podTemplate" in component):
        payload = Payload({**({"name": name} if name else {}), **remainder})
    live_status = deployment.get("status", {})
    saved_status = preserved.saved_status(metadata, _KEYS, v1alpha1.COMPONENT_DEPLOYMENT_STATUS)
    status = {field: live_status[field] for field in _STATUS if field in live_status}
    if "component" in live_status:
        status["service"] = service_status(live_status["component"], saved_status.get("service"))
    if "podSelector" in saved_status:
        status["podSelector"] = saved_status["podSelector"]
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status={})
    return {"metadata": metadata, "spec": service, **({"status": status} if status else {})}
