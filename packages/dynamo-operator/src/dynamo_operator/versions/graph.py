"""DynamoGraphDeployment in both versions."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions import preserved, v1alpha1, v1beta1
from dynamo_operator.versions.component import component_of, service_of
from dynamo_operator.versions.preserved import Payload
from dynamo_operator.versions.saved_component import saved_component
from dynamo_operator.versions.saved_service import saved_service
from dynamo_operator.versions.shapes import ConversionError
from dynamo_operator.versions.statuses import component_status, saved_names, service_status
from kube_runtime.types.meta import Fields, Object

_KEYS: Final = preserved.keys_of("dgd")


def to_v1beta1(graph: Fields) -> Object:
    """The graph in v1beta1, without apiVersion and kind."""
    metadata = graph.get("metadata", {})
    earlier = preserved.saved_spec(metadata, _KEYS, v1beta1.GRAPH_SPEC)
    spec, saved = _spec_to_v1beta1(graph.get("spec", {}), earlier)
    status, saved_status = _status_to_v1beta1(graph.get("status", {}))
    payload = Payload(saved) if saved else None
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status=saved_status)
    return _object(metadata, spec, status)


def to_v1alpha1(graph: Fields) -> Object:
    """The graph in v1alpha1, without apiVersion and kind."""
    metadata = graph.get("metadata", {})
    is_first = not preserved.has_any(metadata, _KEYS)
    saved = preserved.saved_spec(metadata, _KEYS, v1alpha1.GRAPH_SPEC)
    saved_status = preserved.saved_status(metadata, _KEYS, v1alpha1.GRAPH_STATUS)
    spec, remainder = _spec_to_v1alpha1(graph.get("spec", {}), saved.spec if saved else {}, is_first=is_first)
    status = _status_to_v1alpha1(graph.get("status", {}), saved_status)
    payload = Payload({"components": remainder}) if remainder else None
    return _object(preserved.with_payloads(metadata, _KEYS, spec=payload, status={}), spec, status)


def _object(metadata: Object, spec: Object, status: Object) -> Object:
    return {"metadata": metadata, "spec": spec, **({"status": status} if status else {})}


def _spec_to_v1beta1(graph: Fields, earlier: Payload | None) -> tuple[Object, Object]:
    spec = _renamed(graph, common.GRAPH, {"envs": "env", "topologyConstraint": "topologyConstraint"})
    if "topologyConstraint" in spec:
        spec["topologyConstraint"] = _renamed_all(
            spec["topologyConstraint"], {"topologyProfile": "clusterTopologyName"}
        )
    saved: Object = {"pvcs": graph["pvcs"]} if "pvcs" in graph else {}
    services = graph.get("services", {})
    earlier_list = earlier.spec.get("components", []) if earlier else []
    earlier_components = {component.get("name", ""): component for component in reversed(earlier_list)}
    saved_services: Object = {name: None for name, service in services.items() if service is None}
    components = []
    live = sorted((name for name, service in services.items() if service is not None), key=_bytes)
    for name in _in_order(live, [component.get("name", "") for component in earlier_list]):
        service = services[name]
        component = component_of(service, name, earlier_components.get(name))
        components.append(component)
        kept = saved_service(service, component, saves_origins=earlier is None)
        if service.get("serviceName", name) != name:
            kept["serviceName"] = service["serviceName"]
        if kept:
            saved_services[name] = kept
    if components:
        spec["components"] = components
    if saved_services:
        saved["services"] = saved_services
    return spec, saved


def _in_order(names: list[str], earlier: Sequence[str]) -> Iterable[str]:
    """The names in the order of an earlier list that was not sorted; new ones at the end."""
    if _is_sorted(earlier):
        return names
    present = {*names}
    first = dict.fromkeys(name for name in earlier if name in present)
    return [*first, *(name for name in names if name not in first)]


def _spec_to_v1alpha1(graph: Fields, saved: Fields, *, is_first: bool) -> tuple[Object, list[Object]]:
    spec = _renamed(graph, common.GRAPH, {"env": "envs", "topologyConstraint": "topologyConstraint"})
    if "topologyConstraint" in spec:
        spec["topologyConstraint"] = _renamed_all(
            spec["topologyConstraint"], {"clusterTopologyName": "topologyProfile"}
        )
    if "pvcs" in saved:
        spec["pvcs"] = saved["pvcs"]
    components: list[Object] = graph.get("components", [])
    names = [component.get("name", "") for component in components]
    keeps_order = not _is_sorted(names)
    saved_services = saved.get("services", {})
    services: Object = {}
    remainder = []
    for index, (name, component) in enumerate(zip(names, components, strict=True)):
        if name in services:
            problem = f'duplicate component name "{name}" in spec.components'
            raise ConversionError(problem, "spec", "components", index, "name")
        saved_one = saved_services.get(name) or {}
        service = service_of(component, saved_one)
        kept = saved_component(component, service)
        if saved_one.get("serviceName", name) != name:
            service["serviceName"] = saved_one["serviceName"]
        services[name] = service
        if kept or keeps_order or (is_first and "podTemplate" in component):
            remainder.append({"name": name, **kept})
    for name, service in saved_services.items():
        if service is None:
            services.setdefault(name, None)
    if services:
        spec["services"] = services
    return spec, remainder


def _status_to_v1beta1(graph: Fields) -> tuple[Object, Object]:
    status = _renamed(graph, common.GRAPH_STATUS, {"rollingUpdate": "rollingUpdate"})
    if "rollingUpdate" in status:
        status["rollingUpdate"] = _renamed_all(
            status["rollingUpdate"], {"updatedServices": "updatedComponents"}
        )
    services = graph.get("services", {})
    if services:
        status["components"] = {name: component_status(service) for name, service in services.items()}
    saved = {name: names for name, service in services.items() if (names := saved_names(service))}
    return status, {"services": saved} if saved else {}


def _status_to_v1alpha1(graph: Fields, saved: Fields) -> Object:
    status = _renamed(graph, common.GRAPH_STATUS, {"rollingUpdate": "rollingUpdate"})
    if "rollingUpdate" in status:
        status["rollingUpdate"] = _renamed_all(
            status["rollingUpdate"], {"updatedComponents": "updatedServices"}
        )
    saved_services = saved.get("services", {})
    if components := graph.get("components", {}):
        status["services"] = {
            name: service_status(component, saved_services.get(name))
            for name, component in components.items()
        }
    return status


def _renamed(source: Fields, same: Iterable[str], names: dict[str, str]) -> Object:
    result = {name: source[name] for name in same if name in source}
    return {**result, **{new: source[old] for old, new in names.items() if old in source}}


def _renamed_all(source: Fields, names: dict[str, str]) -> Object:
    return {names.get(name, name): value for name, value in source.items()}


def _is_sorted(names: Sequence[str]) -> bool:
    return all(_bytes(first) <= _bytes(second) for first, second in pairwise(names))


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogatepass")
