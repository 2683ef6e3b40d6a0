"""The kinds with two versions, read and written in the one that the API server stores.

The operator computes with v1alpha1. A request in the other version than the stored one needs the conversion
webhook, which is the operator itself: it could not start without another one that runs.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from dynamo_operator.component.api import GROUP, LATER, DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.seen import completed, seen_spec
from dynamo_operator.versions import component_deployment, graph
from dynamo_operator.versions.conversion import convert
from dynamo_operator.versions.parts import some
from kube_runtime.apply.suppression import Recent
from kube_runtime.types.meta import Fields, Kind, Object, Resource, Struct, from_json

REMEMBERED: Final = 2048
"""Specs and statuses whose conversion is remembered: those of the objects that changed last."""

_LARGEST_REMEMBERED: Final = 16 * 1024
"""In bytes of what they became, so that all of a kind have at most 32 MiB."""

_SAVED: Final = tuple(f"{GROUP}/{short}-" for short in ("dgd", "dcd", "dgdr"))
"""How annotations begin in which conversion saves what a version cannot express."""

_SAVED_IN_JSON: Final = (*(start.encode() for start in _SAVED), rb"\u", rb"\/")
"""Of these one is in any JSON that has such an annotation: its name may be escaped."""

_SORTED: Final = msgspec.json.Encoder(order="deterministic")

_HUB_PAYLOAD: Final = f"{GROUP}/dgd-spec".encode()
"""The annotation of a graph in v1alpha1 that was written in v1beta1."""

_RENAMED: Final[Object] = {"dgdRef": {"serviceName": "componentName"}}
"""The field of merge patches that has another name in v1beta1."""


class _Statuses(NamedTuple):
    to_v1beta1: Callable[[Object], tuple[Object, Object]]
    to_v1alpha1: Callable[[Object, Object], Object]


_STATUSES: Final = {
    "DynamoGraphDeployment": _Statuses(graph.status_to_v1beta1, graph.status_to_v1alpha1),
    "DynamoComponentDeployment": _Statuses(
        component_deployment.status_to_v1beta1, component_deployment.status_to_v1alpha1
    ),
}


class _Metadata(Struct):
    name: Raw = Raw(b'""')
    annotations: Raw = Raw(b"{}")


class _Document(Struct):
    api_version: str = ""
    metadata: Raw = Raw(b"{}")
    spec: Raw = Raw(b"")
    status: Raw = Raw(b"")


class TwoVersions:
    """The translation of one kind, which `is_later` if it is stored in v1beta1.

    That may change at any time. What is read says itself in which version it is: a watch, or a request that
    is under way, may bring the former one.
    """

    def __init__(self, kind: Kind, *, is_later: bool = True) -> None:
        self._kind = kind
        self._is_graph = kind == DynamoGraphDeployment.KIND
        self._is_request = kind == DynamoGraphDeploymentRequest.KIND
        self._later = Kind(kind.group, LATER, kind.name, kind.plural, kind.namespaced)
        self.is_later = is_later
        stored, later = (
            b'{"apiVersion":"%s","kind":"%s"' % (it.api_version.encode(), it.name.encode())
            for it in (kind, self._later)
        )
        self._head = stored + b',"metadata":'
        self._own = (stored, later)
        # Most changes are of a status, and a write is answered with what a watch brings soon afterwards.
        self._texts = Recent[bytes](REMEMBERED)

    @property
    def stored(self) -> Kind:
        """The kind in the version in which it is stored now."""
        return self._later if self.is_later else self._kind

    def read(self, raw: bytes | Raw) -> bytes | Raw:
        """A stored object in v1alpha1. Raises ConversionError.

        Only the metadata of requests are converted: what v1beta1 alone has is kept in an annotation of
        theirs, and read there. Those of the other kinds are as they are.
        """
        document = from_json(raw, _Document)
        is_later = document.api_version != self._kind.api_version
        if not is_later and not self._may_have_been_later(raw, document):
            return raw
        if self._is_request:
            return msgspec.json.encode(convert(from_json(raw, Object), self._kind.api_version))
        kept = self._kept(document.metadata)
        if not is_later and not kept:
            return raw
        own = self._own[is_later] + kept
        parts = [self._head, bytes(document.metadata)]
        if document.spec:
            parts += b',"spec":', self._converted(self._spec, own, b',"spec":%s}' % bytes(document.spec))
        if document.status and not is_later:
            parts += b',"status":', bytes(document.status)
        elif document.status:
            parts += (
                b',"status":',
                self._converted(self._status, own, b',"status":%s}' % bytes(document.status)),
            )
        return b"".join((*parts, b"}"))

    # In most graphs nothing is saved, and their managed fields are longer than their specs.
    def _kept(self, metadata: Raw) -> bytes:
        """What conversion looks at in the metadata of an object in which something is saved, or nothing."""
        read = from_json(metadata, _Metadata)
        annotations = bytes(read.annotations)
        if not any(start in annotations for start in _SAVED_IN_JSON):
            return b""
        return b',"metadata":{"name":%s,"annotations":%s}' % (bytes(read.name), annotations)

    # Pods must not depend on which version is stored. What a graph in v1beta1 says of its mounts beyond
    # those of PVCs is in that annotation, if v1alpha1 is stored.
    def _may_have_been_later(self, raw: bytes | Raw, document: _Document) -> bool:
        """Whether a graph of v1alpha1 was written in v1beta1: then it is read with its own mounts."""
        return self._is_graph and bool(document.spec) and _HUB_PAYLOAD in bytes(raw)

    def _converted(self, step: Callable[[Object], Object], own: bytes, part: bytes) -> bytes:
        """What a step makes of an object with a spec or status alone: the end of its text after `own`."""
        key = _key(own, part)
        converted = self._texts.get(key)
        if converted is None:
            converted = msgspec.json.encode(step(from_json(own + part, Object)))
            self._remember(key, converted)
        return converted

    def _remember(self, key: bytes, converted: bytes) -> None:
        if len(converted) <= _LARGEST_REMEMBERED:
            self._texts.put(key, converted)

    def _spec(self, part: Object) -> Object:
        is_later = part["apiVersion"] == self._later.api_version
        return seen_spec(part if is_later else convert(part, self._later.api_version))

    # The names in a status differ in few places. The schema and our own types hold the rest to its types.
    def _status(self, part: Object) -> Object:
        saved = part.get("metadata", {}).get("annotations", ())
        is_saved = any(key.startswith(_SAVED) and key.endswith("-status") for key in saved)
        if self._kind.name in _STATUSES and not is_saved:
            with suppress(AttributeError, TypeError, LookupError):  # of another type: conversion says where
                return _STATUSES[self._kind.name].to_v1alpha1(part["status"], {})
        status: Object = convert(part, self._kind.api_version).get("status", {})
        return status

    def written(self, body: Object) -> Object:
        """An object in the stored version, with annotations for what v1beta1 cannot express."""
        if not self.is_later:
            return body
        if "spec" not in body and self._kind.name in _STATUSES:
            status, _ = _STATUSES[self._kind.name].to_v1beta1(body.get("status", {}))
            return {**body, "apiVersion": self._later.api_version, "status": status}
        # As JSON: what renders and reports makes tuples, too.
        text = msgspec.json.encode(body)
        body = from_json(text, Object)
        later = convert(body, self._later.api_version)
        if self._kind == DynamoComponentDeployment.KIND and "spec" in later and b"null" not in text:
            self._expect(later, body["spec"])
        if self._kind == DynamoGraphDeploymentScalingAdapter.KIND and "status" in later:
            later["status"].setdefault("replicas", 0)  # required: of a component that has none, or is gone
        return later

    # A component is written once, and comes back with its first statuses. Conversion loses none of its fields
    # (`tests/versions/test_properties.py`), only nulls. Where the API server adds something, it has another
    # text and is converted. Not so with graphs: their components have an order that services do not have.
    def _expect(self, later: Object, spec: Object) -> None:
        """Remember what a component will be read as that is about to be written."""
        metadata = some(later["metadata"], ("name", "annotations"))
        own = self._own[True] + self._kept(Raw(_SORTED.encode(metadata)))
        part = b',"spec":%s}' % _SORTED.encode(later["spec"])
        self._remember(_key(own, part), msgspec.json.encode(completed(self._kind.name, spec, later["spec"])))

    def patch(self, patch: Object) -> Object:
        """A merge patch of metadata, replicas or references, in the stored version."""
        if not self.is_later:
            return patch
        return {name: _renamed(value, _RENAMED) if name == "spec" else value for name, value in patch.items()}

    def pointer(self, live: Resource, path: Sequence[str]) -> tuple[str, list[Object]]:
        """The JSON pointer of a service's field, and the test that its component is where it was."""
        if not self.is_later:
            return f"/{'/'.join(path)}", []
        match path, live:
            case ("spec", "services", service, field), DynamoGraphDeployment():
                at = f"/spec/components/{list(live.spec.services).index(service)}"
                return f"{at}/{field}", [{"op": "test", "path": f"{at}/name", "value": service}]
        raise ValueError(f"{'.'.join(path)} has no place in {self.stored.api_version}")


def _key(own: bytes, part: bytes) -> bytes:
    digest = blake2b(own, digest_size=16)
    digest.update(part)
    return digest.digest()


def _renamed(fields: Fields, names: Fields) -> Object:
    renamed: Object = {}
    for name, inner in fields.items():
        new = names.get(name)
        renamed[new if isinstance(new, str) else name] = (
            _renamed(inner, new) if isinstance(new, dict) else inner
        )
    return renamed
