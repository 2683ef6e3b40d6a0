"""Kinds of the Kubernetes API, keys of their objects, and the URL paths of both."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NewType, TypeAlias
from urllib.parse import quote, unquote

from kube_runtime.errors import Invalid

UrlPath = NewType("UrlPath", str)
"""An absolute, quoted path, with a query if `proxied` added one."""

_BAD_REQUEST = 400
_DOTS = ("", ".", "..")
_WRITTEN = "/%:@!$&'()*+,;="
"""Characters that a URL may have as they are, besides the unreserved ones (RFC 3986, 3.3)."""


def url_path(*segments: str) -> UrlPath:
    """The path of these segments, each quoted.

    Raises:
        Invalid: no object can have such a name. A quoted slash would not help: the API server decodes it
            before it splits the path. Source: `IsValidPathSegmentName` in k8s.io/apimachinery.
    """
    for segment in segments:
        if segment in _DOTS or "/" in segment or "%" in segment:
            expected = 'expected a name without "/" and "%", for example "chat"'
            raise Invalid(_BAD_REQUEST, "InvalidName", f'invalid name "{segment}" ({expected})')
    return UrlPath("/" + "/".join(quote(segment, ":", errors="replace") for segment in segments))


def proxied(proxy: UrlPath, target: str) -> UrlPath:
    """The path of an object's proxy, followed by a path and query of what is behind it.

    Raises:
        Invalid: the target leads to another object of the API server.
    """
    path, mark, query = target.partition("?")
    segments = re.split("/|%2f", path, flags=re.IGNORECASE)
    if any(unquote(segment) in (".", "..") for segment in segments):
        raise Invalid(
            _BAD_REQUEST, "InvalidPath", f'invalid path "{target}" (expected no . and .. segments)'
        )
    absolute = path if path.startswith("/") else f"/{path}"
    return UrlPath(f"{proxy}{quote(absolute, _WRITTEN)}{mark}{quote(query, _WRITTEN + '?')}")


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
