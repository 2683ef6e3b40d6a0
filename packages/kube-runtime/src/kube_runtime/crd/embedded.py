"""Schemas of the Kubernetes types that our kinds embed, such as PodSpec.

They come from the API server's own OpenAPI document (`tools/pod_schema.py` writes the data file),
where one type refers to another by name. A CustomResourceDefinition allows no references, so they
are inlined here; the parts are shared in memory, hence not to be changed.
"""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import kube_runtime as kube
from kube_runtime.crd.declare import PATTERN
from kube_runtime.kind import Object

_DATA = Path(kube.__file__).parent / "schemas" / "kubernetes.json"
"""A plain path, because importing `importlib.resources` is slow."""

MAIN_CONTAINER_TEXT = (
    "Container laid over the component's main container; it needs no name. "
    "`kubectl explain pod.spec.containers` documents each field."
)


@cache
def int_or_string(pattern: str = "") -> Object:
    """The schema of an integer or string with that pattern; do not change it."""
    schema: Object = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    return {**schema, "pattern": pattern} if pattern else schema


@cache
def embedded(name: str) -> Object:
    """The schema of a Kubernetes type by its short name, or of our own `ExtraPodSpec`."""
    if name == "ExtraPodSpec":
        return _extra_pod_spec()
    inlined: Object = _inlined(definitions()[name])
    return inlined


def _extra_pod_spec() -> Object:
    """A PodSpec that may leave `containers` out, with a main container that needs no name."""
    main = {**embedded("Container"), "description": MAIN_CONTAINER_TEXT}
    pod = embedded("PodSpec")
    properties = {**pod["properties"], "mainContainer": _without(main, "name")}
    return {**_without(pod, "containers"), "properties": dict(sorted(properties.items()))}


def _without(schema: Object, name: str) -> Object:
    """The schema without that required field."""
    required = [field for field in schema["required"] if field != name]
    rest = {keyword: value for keyword, value in schema.items() if keyword != "required"}
    return {**rest, "required": required} if required else rest


@cache
def definitions() -> dict[str, Object]:
    """The Kubernetes types by their short names, which refer to each other by `$ref`; do not change them."""
    return msgspec.json.decode(_DATA.read_bytes(), type=dict[str, Object])


def _inlined(schema: object) -> Any:
    """The schema with every reference resolved."""
    if isinstance(schema, list):
        return [_inlined(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(name := schema.get("$ref"), str):
        return embedded(name)
    if schema.get("quantity") is True:
        return int_or_string(PATTERN)
    if schema.get("x-kubernetes-int-or-string") is True:
        return int_or_string()
    return {keyword: _inlined(value) for keyword, value in schema.items()}
