"""Kinds of the Kubernetes API, keys of their objects, and the URL paths of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from kube_runtime.url_path import UrlPath, url_path

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

    @property
    def api_version(self) -> str:
        """The `apiVersion` of objects, such as `v1` or `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str | None = None, subresource: str = "") -> UrlPath:
        """The URL path of the collection (no name), of one object, or of its subresource.

        With an empty namespace, the collection in all namespaces.

        Raises:
            Invalid: no object can have that name, or be in that namespace.
        """
        root = ("apis", self.group) if self.group else ("api",)
        is_in_namespace = self.namespaced and (namespace or name is not None)
        scope = ("namespaces", namespace) if is_in_namespace else ()
        rest = () if name is None else (name, subresource) if subresource else (name,)
        return url_path(*root, self.version, *scope, self.plural, *rest)

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
