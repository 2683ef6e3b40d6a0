"""The URL paths of kinds and objects at the API server."""

import re
from typing import NewType
from urllib.parse import quote, unquote

from kube_runtime.errors import Invalid
from kube_runtime.kind import Kind

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


def path_of(
    kind: Kind, namespace: str = "", name: str | None = None, subresource: str = ""
) -> UrlPath:
    """The path of a kind's collection (no name), of one object, or of its subresource.

    With an empty namespace, the collection in all namespaces.

    Raises:
        Invalid: no object can have that name, or be in that namespace.
    """
    root = ("apis", kind.group) if kind.group else ("api",)
    is_in_namespace = kind.namespaced and (namespace or name is not None)
    scope = ("namespaces", namespace) if is_in_namespace else ()
    rest = () if name is None else (name, subresource) if subresource else (name,)
    return url_path(*root, kind.version, *scope, kind.plural, *rest)
