"""DynamoComponentDeployment in both versions: one component, and its status."""

from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions import preserved, v1alpha1, v1beta1
from dynamo_operator.versions.component import component_of, service_of
from dynamo_operator.versions.parts import present, some
from dynamo_operator.versions.preserved import Payload
from dynamo_operator.versions.saved_component import saved_component
from dynamo_operator.versions.saved_service import saved_service
from dynamo_operator.versions.statuses import component_status, saved_names, service_status
from kube_runtime.types.meta import Fields, Object

_KEYS: Final = preserved.keys_of("dcd")
_NAME: Final = "serviceName"


def to_v1beta1(deployment: Fields) -> Object:
    """The deployment in v1beta1, without apiVersion and kind.

    Its component is named after the service, or after the object if the service has no name.
    """
    metadata, service = deployment.get("metadata", {}), deployment.get("spec", {})
    earlier = preserved.saved_spec(metadata, _KEYS, v1beta1.COMPONENT_DEPLOYMENT_SPEC)
    name, is_defaulted = service.get(_NAME, ""), False
    if not name and (earlier is None or "name" in earlier.spec):
        name = metadata.get("name", "")
        is_defaulted = bool(name)
    component = component_of(service, name, earlier.spec if earlier else None)
    saved = saved_service(service, saves_origins=earlier is None)
    payload = None
    if saved or is_defaulted or (earlier is None and "podTemplate" in component):
        payload = Payload(saved, frozenset({_NAME} if is_defaulted else ()))
    status, saved_status = status_to_v1beta1(deployment.get("status", {}))
    spec = {**some(service, common.COMPONENT_DEPLOYMENT), **component}
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status=saved_status)
    return {"metadata": metadata, **present(spec=spec, status=status)}


def to_v1alpha1(deployment: Fields) -> Object:
    """The deployment in v1alpha1, without apiVersion and kind."""
    metadata, component = deployment.get("metadata", {}), deployment.get("spec", {})
    is_first = not preserved.has_any(metadata, _KEYS)
    spec = spec_to_v1alpha1(deployment)
    remainder = saved_component(component, spec)
    name, object_name = component.get("name", ""), metadata.get("name", "")
    payload = None
    if remainder or (object_name and not name) or (is_first and "podTemplate" in component):
        payload = Payload({**present(name=name), **remainder})
    saved_status = preserved.saved_status(metadata, _KEYS, v1alpha1.COMPONENT_DEPLOYMENT_STATUS)
    status = status_to_v1alpha1(deployment.get("status", {}), saved_status)
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status={})
    return {"metadata": metadata, **present(spec=spec, status=status)}


def spec_to_v1alpha1(deployment: Fields) -> Object:
    """The spec in v1alpha1, as far as that can hold it."""
    metadata, component = deployment.get("metadata", {}), deployment.get("spec", {})
    saved = preserved.saved_spec(metadata, _KEYS, v1alpha1.COMPONENT_DEPLOYMENT_SPEC)
    name = component.get("name", "")
    is_defaulted = saved is not None and _NAME in saved.empty_paths and name == metadata.get("name", "")
    return {
        **some(component, common.COMPONENT_DEPLOYMENT),
        **present(serviceName=None if is_defaulted else name),
        **service_of(component, saved.spec if saved else None),
    }


def status_to_v1beta1(deployment: Fields) -> tuple[Object, Object]:
    """The status in v1beta1, and the part of this one to be saved."""
    service = deployment.get("service")
    status = some(deployment, common.COMPONENT_DEPLOYMENT_STATUS)
    if service is not None:
        status["component"] = component_status(service)
    saved = present(podSelector=deployment.get("podSelector"), service=saved_names(service or {}))
    return status, saved


def status_to_v1alpha1(deployment: Fields, saved: Fields) -> Object:
    """The status in v1alpha1; `saved` was saved of one in v1alpha1."""
    status = {**some(deployment, common.COMPONENT_DEPLOYMENT_STATUS), **some(saved, ["podSelector"])}
    if "component" in deployment:
        status["service"] = service_status(deployment["component"], saved.get("service"))
    return status
