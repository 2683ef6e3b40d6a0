"""Conversion of an object between the versions of `nvidia.com`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dynamo_operator.versions import adapter, component_deployment, graph, request, v1alpha1, v1beta1
from dynamo_operator.versions.parts import present
from dynamo_operator.versions.room import crowded_out, without_annotations
from dynamo_operator.versions.shapes import ConversionError, Shape, invalid
from dynamo_operator.versions.typed import typed_spec, with_typed
from kube_runtime.types.meta import Fields, Object

__all__ = ["ConversionError", "convert", "convert_spec", "left_out"]


@dataclass(frozen=True, slots=True)
class _Way:
    """From one version to another: what is read, and what makes the other.

    `spec` makes its spec alone, where that costs less: without what is saved for the way back.
    """

    shape: Shape
    convert: Callable[[Fields], Object]
    spec: Callable[[Fields], Object] | None = None


_FROM_V1ALPHA1: Final = {
    "DynamoGraphDeployment": _Way(v1alpha1.GRAPH, graph.to_v1beta1),
    "DynamoComponentDeployment": _Way(v1alpha1.COMPONENT_DEPLOYMENT, component_deployment.to_v1beta1),
    "DynamoGraphDeploymentRequest": _Way(v1alpha1.REQUEST, request.to_v1beta1),
    "DynamoGraphDeploymentScalingAdapter": _Way(v1alpha1.ADAPTER, adapter.to_v1beta1),
}
_FROM_V1BETA1: Final = {
    "DynamoGraphDeployment": _Way(v1beta1.GRAPH, graph.to_v1alpha1, graph.spec_to_v1alpha1),
    "DynamoComponentDeployment": _Way(
        v1beta1.COMPONENT_DEPLOYMENT, component_deployment.to_v1alpha1, component_deployment.spec_to_v1alpha1
    ),
    "DynamoGraphDeploymentRequest": _Way(v1beta1.REQUEST, request.to_v1alpha1),
    "DynamoGraphDeploymentScalingAdapter": _Way(v1beta1.ADAPTER, adapter.to_v1alpha1),
}
_SOURCES: Final = {
    v1beta1.API_VERSION: (v1alpha1.API_VERSION, _FROM_V1ALPHA1),
    v1alpha1.API_VERSION: (v1beta1.API_VERSION, _FROM_V1BETA1),
}


def convert(document: object, to: str) -> Object:
    """The object in the version `to`, such as `nvidia.com/v1beta1`. It shares parts with the document.

    Raises ConversionError, for any JSON that is not an object of the other version.
    """
    converted = _complete(document, to)
    names = crowded_out(converted)
    return without_annotations(converted, names) if names else converted


def left_out(document: object, to: str) -> tuple[str, ...]:
    """The annotations that `convert` leaves out for lack of room. Raises ConversionError, as that does."""
    return crowded_out(_complete(document, to))


def _complete(document: object, to: str) -> Object:
    source, kind, way, shape = _way(document, to)
    with _shallow():
        read = way.shape.read(source)
        converted = with_typed(source, read, way.convert(read), shape)
    return {"apiVersion": to, "kind": kind, **converted}


def convert_spec(document: object, to: str) -> Object:
    """The spec of `convert`; empty if there is none. Raises ConversionError, as that does."""
    source, kind, way, shape = _way(document, to)
    if way.spec is None:
        converted = convert(document, to)
    else:
        with _shallow():
            read = way.shape.read(source)
            converted = typed_spec(kind, read.get("metadata", {}), present(spec=way.spec(read)), shape)
    spec: Object = converted.get("spec", {})
    return spec


@contextmanager
def _shallow() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise ConversionError("the object is nested too deeply") from None


def _way(document: object, to: str) -> tuple[Fields, str, _Way, Shape]:
    """The document, its kind, its way to the version `to`, and its shape there."""
    if not isinstance(document, dict):
        raise invalid(document, "an object")
    if to not in _SOURCES:
        raise invalid(to, " or ".join(sorted(_SOURCES))).within("desiredAPIVersion")
    source, ways = _SOURCES[to]
    if document.get("apiVersion") != source:
        raise invalid(document.get("apiVersion"), f'"{source}"').within("apiVersion")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in ways:
        raise invalid(kind, f"one of {', '.join(ways)}").within("kind")
    return document, kind, ways[kind], _SOURCES[source][1][kind].shape
