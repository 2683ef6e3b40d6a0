"""Kinds of the Kubernetes API, and keys of their objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object to be written, as plain JSON."""

Fields: TypeAlias = Mapping[str, Any]
"""The fields of a JSON object that is only read."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of the Kubernetes API: its group ("" is the core group), version, name, plural and scope."""

    group: str
    version: str
    name: str
    plural: str
    namespaced: bool = True
    api_version: str = field(init=False, compare=False)
    """The `apiVersion` of objects, such as `v1` or `apps/v1`."""

    def __post_init__(self) -> None:
        api_version = f"{self.group}/{self.version}" if self.group else self.version
        object.__setattr__(self, "api_version", api_version)

    def manifest(self, metadata: Object, **fields: object) -> Object:
        """An object of this kind, to be written."""
        kind = {"apiVersion": self.api_version, "kind": self.name}
        return {**kind, "metadata": metadata, **fields}

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Key(NamedTuple):
    """Namespace and name of an object; the namespace of a cluster-scoped object is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(body: Object) -> Key:
    """The key of a plain JSON object."""
    metadata = body["metadata"]
    return Key(metadata.get("namespace", ""), metadata["name"])
