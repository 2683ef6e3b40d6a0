"""DynamoGraphDeployment in both versions."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions import preserved, v1alpha1, v1beta1
from dynamo_operator.versions.component import component_of, service_of
from dynamo_operator.versions.parts import present, renamed, reversed_names, some
from dynamo_operator.versions.preserved import Payload
from dynamo_operator.versions.saved_component import saved_component
from dynamo_operator.versions.saved_service import saved_service
from dynamo_operator.versions.shapes import ConversionError
from dynamo_operator.versions.statuses import component_status, saved_names, service_status
from kube_runtime.types.meta import Fields, Object

_KEYS: Final = preserved.keys_of("dgd")
_CONSTRAINT: Final = {"topologyProfile": "clusterTopologyName", "packDomain": "packDomain"}
_ROLLING_UPDATE: Final = {
    **{name: name for name in common.ROLLING_UPDATE},
    "updatedServices": "updatedComponents",
}


def to_v1beta1(graph: Fields) -> Object:
    """The graph in v1beta1, without apiVersion and kind."""
    metadata, live = graph.get("metadata", {}), graph.get("spec", {})
    earlier = preserved.saved_spec(metadata, _KEYS, v1beta1.GRAPH_SPEC)
    components, services = _components(live.get("services", {}), earlier)
    spec = {
        **some(live, common.GRAPH),
        **renamed(live, {"envs": "env"}),
        **_nested(live, "topologyConstraint", _CONSTRAINT),
        **present(components=components),
    }
    saved = present(pvcs=live.get("pvcs"), services=services)
    status, saved_status = status_to_v1beta1(graph.get("status", {}))
    metadata = preserved.with_payloads(
        metadata, _KEYS, spec=Payload(saved) if saved else None, status=saved_status
    )
    return {"metadata": metadata, **present(spec=spec, status=status)}


def to_v1alpha1(graph: Fields) -> Object:
    """The graph in v1alpha1, without apiVersion and kind."""
    metadata, components = graph.get("metadata", {}), graph.get("spec", {}).get("components", [])
    spec = spec_to_v1alpha1(graph)
    is_first = not preserved.has_any(metadata, _KEYS)
    remainder = _remainder(components, spec.get("services", {}), is_first=is_first)
    saved_status = preserved.saved_status(metadata, _KEYS, v1alpha1.GRAPH_STATUS)
    status = status_to_v1alpha1(graph.get("status", {}), saved_status)
    metadata = preserved.with_payloads(
        metadata, _KEYS, spec=Payload({"components": remainder}) if remainder else None, status={}
    )
    return {"metadata": metadata, **present(spec=spec, status=status)}


def spec_to_v1alpha1(graph: Fields) -> Object:
    """The spec in v1alpha1, as far as that can hold it."""
    live = graph.get("spec", {})
    payload = preserved.saved_spec(graph.get("metadata", {}), _KEYS, v1alpha1.GRAPH_SPEC)
    saved = payload.spec if payload else {}
    return {
        **some(live, common.GRAPH),
        **renamed(live, {"env": "envs"}),
        **_nested(live, "topologyConstraint", reversed_names(_CONSTRAINT)),
        **some(saved, ["pvcs"]),
        **present(services=_services(live.get("components", []), saved.get("services", {}))),
    }


def _components(services: Fields, earlier: Payload | None) -> tuple[list[Object], Object]:
    """The components of services, and what is saved of these. A service that is null has no component."""
    earlier_components: list[Object] = earlier.spec.get("components", []) if earlier else []
    at = {component.get("name", ""): component for component in reversed(earlier_components)}
    saved: Object = {name: None for name, service in services.items() if service is None}
    components = []
    for name in _in_order(services.keys() - saved.keys(), earlier_components):
        service = services[name]
        component = component_of(service, name, at.get(name))
        components.append(component)
        kept = saved_service(service, saves_origins=earlier is None)
        kept |= some(service, ["serviceName"])
        if kept:
            saved[name] = kept
    return components, saved


def _in_order(names: set[str], earlier: Sequence[Object]) -> list[str]:
    """The names, sorted; or in the order of an earlier list that was not sorted, and new ones at the end."""
    earlier_names = [component.get("name", "") for component in earlier]
    first = [] if _are_sorted(earlier_names) else [name for name in earlier_names if name in names]
    return [*dict.fromkeys([*first, *sorted(names, key=_bytes)])]


def _services(components: list[Object], saved: Fields) -> Object:
    """The services of components, and those that are null."""
    services: Object = {}
    for index, component in enumerate(components):
        name = component.get("name", "")
        if name in services:
            problem = f'duplicate component name "{name}" in spec.components'
            raise ConversionError(problem, "spec", "components", index, "name")
        saved_one = saved.get(name) or {}
        services[name] = {**service_of(component, saved_one), **some(saved_one, ["serviceName"])}
    nulls = {name: None for name, service in saved.items() if service is None}
    return {**nulls, **services}


def _remainder(components: list[Object], services: Fields, *, is_first: bool) -> list[Object]:
    """What is saved of components, because their services cannot hold it.

    `is_first`: the graph was never in v1alpha1. Then a component with pods is saved in any case, so that the
    way back knows where the graph came from.
    """
    keeps_order = not _are_sorted([component.get("name", "") for component in components])
    remainder = []
    for component in components:
        name = component.get("name", "")
        kept = saved_component(component, services[name])
        if kept or keeps_order or (is_first and "podTemplate" in component):
            remainder.append({"name": name, **kept})
    return remainder


def status_to_v1beta1(graph: Fields) -> tuple[Object, Object]:
    """The status in v1beta1, and the part of this one to be saved."""
    services = graph.get("services", {})
    status = {
        **some(graph, common.GRAPH_STATUS),
        **_nested(graph, "rollingUpdate", _ROLLING_UPDATE),
        **present(components={name: component_status(service) for name, service in services.items()}),
    }
    saved = {name: names for name, service in services.items() if (names := saved_names(service))}
    return status, present(services=saved)


def status_to_v1alpha1(graph: Fields, saved: Fields) -> Object:
    """The status in v1alpha1; `saved` was saved of one in v1alpha1."""
    saved_services = saved.get("services", {})
    services = {
        name: service_status(component, saved_services.get(name))
        for name, component in graph.get("components", {}).items()
    }
    return {
        **some(graph, common.GRAPH_STATUS),
        **_nested(graph, "rollingUpdate", reversed_names(_ROLLING_UPDATE)),
        **present(services=services),
    }


def _nested(source: Fields, field: str, names: dict[str, str]) -> Object:
    """An object in a field, with the names that its own fields have in the other version."""
    return {field: renamed(source[field], names)} if field in source else {}


def _are_sorted(names: Sequence[str]) -> bool:
    return all(_bytes(first) <= _bytes(second) for first, second in pairwise(names))


def _bytes(name: str) -> bytes:
    return name.encode(errors="surrogatepass")
