"""`spec.overrides.dgd` of a request: a partial graph, merged over the one that the profiler generates."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.problems import Problem, dotted
from dynamo_operator.versions.conversion import ConversionError, convert
from dynamo_operator.versions.parts import without
from kube_runtime.merge import MergeError, merged
from kube_runtime.types.meta import Fields, Object

V1ALPHA1: Final = "nvidia.com/v1alpha1"
V1BETA1: Final = "nvidia.com/v1beta1"

_ARGUMENTS_REPLACED: Final = ("Frontend", "Planner")
"""Services whose arguments an override in v1alpha1 replaces; those of others are appended."""

_REPLACED: Final = (
    *("properties", "spec", "properties", "services", "additionalProperties"),
    *("properties", "extraPodSpec", "properties", "containers"),
)
"""Where the schema of v1alpha1 has the further containers: a list that Dynamo replaces as a whole."""

_RESERVED: Final = "nvidia.com/dgd-"
"""Prefix of the annotations that conversion writes."""

_MERGED_METADATA: Final = ("labels", "annotations")
_USED_METADATA: Final = ("name", *_MERGED_METADATA)
"""Metadata of an override with an effect; the name is that of the graph to create."""

_APPEND: Final[Object] = {"args": "append"}
"""What `$patch` of a container may be."""

_MAIN: Final = ("extraPodSpec", "mainContainer")
_POD: Final = ("podTemplate", "spec")

Schemas: TypeAlias = Mapping[str, Fields]
"""The schema of a graph by its apiVersion."""


# A running operator needs no schemas, so they are imported for the first override.
@cache
def schemas() -> Schemas:
    """The schemas of both versions."""
    from dynamo_operator.graph import v1beta1
    from kube_runtime.schema import resource_schema

    later = resource_schema(v1beta1.DynamoGraphDeployment)
    return {V1ALPHA1: resource_schema(DynamoGraphDeployment), V1BETA1: later}


class OverrideError(ValueError):
    """The override or the blueprint cannot be used."""


@dataclass(frozen=True, slots=True)
class Overridden:
    """The graph after the merge, in the version of the blueprint, and what of the override had no effect."""

    graph: Object
    warnings: tuple[Problem, ...] = ()


def overridden(blueprint: Object, override: Object, schemas: Schemas) -> Overridden:
    """The blueprint, a whole graph, with the override over it. They may have different versions.

    Raises:
        OverrideError: one of them is not a graph, or the override has a value that cannot be merged.
    """
    _require_graph("blueprint", blueprint)
    _require_graph("override", override)
    if "status" in override:
        raise OverrideError("override status is not supported")
    own, version = blueprint["apiVersion"], override["apiVersion"]
    try:
        base = blueprint if own == version else convert(blueprint, version)
        warnings: list[Problem] = []
        usable = _usable(base, override, warnings)
        graph = {**base, **merged(base, usable, _described(schemas[version], version))}
        graph = graph if own == version else convert(graph, own)
    except MergeError as error:
        raise OverrideError(f"override {dotted(error.path)} {error.text}") from error
    except ConversionError as error:
        raise OverrideError(f"blueprint cannot be converted: {error}") from error
    return Overridden(graph, tuple(warnings))


def _require_graph(role: str, document: Fields) -> None:
    version, kind = document.get("apiVersion"), document.get("kind")
    if version not in (V1ALPHA1, V1BETA1) or kind != DynamoGraphDeployment.KIND.name:
        expected = f"must be {V1ALPHA1} or {V1BETA1}"
        raise OverrideError(f'{role} {expected}, got apiVersion "{version or ""}" kind "{kind or ""}"')


def _described(schema: Fields, version: str) -> Fields:
    """The schema of a graph by which it is merged: with labels and annotations."""
    texts: Object = {"type": "object", "additionalProperties": {"type": "string"}}
    metadata: Object = {"type": "object", "properties": {"labels": texts, "annotations": texts}}
    described = {**schema, "properties": {**schema["properties"], "metadata": metadata}}
    return _with_replaced(described, _REPLACED) if version == V1ALPHA1 else described


def _with_replaced(schema: Fields, path: tuple[str, ...]) -> Object:
    """The schema with the list at a path in it as one that is replaced as a whole."""
    if not path:
        return {**schema, "x-kubernetes-list-type": "atomic"}
    first, *rest = path
    return {**schema, first: _with_replaced(schema[first], tuple(rest))}


def _usable(base: Fields, override: Fields, warnings: list[Problem]) -> Object:
    """What of the override is merged, as it is merged. What is left out becomes a warning."""
    usable = without(override, "apiVersion", "kind", "metadata")
    metadata = override.get("metadata", {})
    usable["metadata"] = _usable_metadata(metadata, warnings) if isinstance(metadata, dict) else metadata
    spec = override.get("spec")
    if isinstance(spec, dict):
        of_version = _usable_services if override["apiVersion"] == V1ALPHA1 else _usable_components
        usable["spec"] = of_version(base.get("spec") or {}, spec, warnings)
    return usable


def _usable_metadata(metadata: Fields, warnings: list[Problem]) -> Object:
    if ignored := sorted(metadata.keys() - set(_USED_METADATA)):
        message = f"ignored identity/runtime fields: {', '.join(ignored)}"
        warnings.append(Problem("metadata", message))
    used = {name: metadata[name] for name in _MERGED_METADATA if name in metadata}
    annotations = used.get("annotations")
    if isinstance(annotations, dict):
        if reserved := sorted(key for key in annotations if key.startswith(_RESERVED)):
            message = f"ignored reserved operator keys: {', '.join(reserved)}"
            warnings.append(Problem("metadata.annotations", message))
        used["annotations"] = without(annotations, *reserved)
    return used


def _usable_services(base: Fields, spec: Fields, warnings: list[Problem]) -> Object:
    services, present = spec.get("services"), base.get("services") or {}
    if not isinstance(services, dict):
        return {**spec}
    for name in sorted(services.keys() - present.keys()):
        message = "ignored because the generated blueprint has no such service"
        warnings.append(Problem(f"spec.services.{name}", message))
    known = {name: service for name, service in services.items() if name in present}
    appended = {
        name: _edited(service, present[name], _MAIN, _appended)
        for name, service in known.items()
        if name not in _ARGUMENTS_REPLACED
    }
    return {**spec, "services": {**known, **appended}}


def _usable_components(base: Fields, spec: Fields, warnings: list[Problem]) -> Object:
    components = spec.get("components")
    if not isinstance(components, list):
        return {**spec}
    present = _by_name(base.get("components"))
    usable: list[Any] = []
    for component in components:
        name = component.get("name") if isinstance(component, dict) else None
        if isinstance(name, str) and name not in present:
            message = "ignored because the generated blueprint has no such component"
            warnings.append(Problem(f"spec.components[name={name}]", message))
        else:
            usable.append(_edited(component, present.get(name or ""), _POD, _with_patches))
    return {**spec, "components": usable}


def _with_patches(pod: Any, whole: Any) -> Any:
    """The pod of an override, with the arguments of containers whose `$patch` says so appended."""
    if not isinstance(pod, dict) or not isinstance(pod.get("containers"), list):
        return pod
    containers = _by_name(whole.get("containers"))
    return {**pod, "containers": [_with_patch(container, containers) for container in pod["containers"]]}


def _with_patch(container: Any, containers: Mapping[str, Fields]) -> Any:
    if not isinstance(container, dict) or "$patch" not in container:
        return container
    if container["$patch"] != _APPEND:
        raise OverrideError('override $patch of a container must be {"args": "append"}')
    return _appended(without(container, "$patch"), containers.get(container.get("name", ""), {}))


def _appended(container: Any, whole: Any) -> Any:
    """The container of an override with its arguments after those of the whole one."""
    arguments = container.get("args") if isinstance(container, dict) else None
    if not isinstance(arguments, list):
        return container
    return {**container, "args": [*(whole.get("args") or []), *arguments]}


def _edited(change: Any, whole: Any, path: tuple[str, ...], edit: Callable[[Any, Any], Any]) -> Any:
    """The change with an edit of its value at a path of fields; the edit also sees that of the whole."""
    whole = whole if isinstance(whole, dict) else {}
    if not path:
        return edit(change, whole)
    first, *rest = path
    if not isinstance(change, dict) or first not in change:
        return change
    return {**change, first: _edited(change[first], whole.get(first), tuple(rest), edit)}


def _by_name(entries: Any) -> dict[str, Fields]:
    listed = entries if isinstance(entries, list) else []
    named = [entry for entry in listed if isinstance(entry, dict)]
    return {entry["name"]: entry for entry in named if isinstance(entry.get("name"), str)}
