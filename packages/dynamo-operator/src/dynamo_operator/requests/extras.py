"""What a request in v1beta1 says that v1alpha1, with which the operator computes, has no fields for.

Conversion preserves it in an annotation, so it is in the request whichever version was read.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec
from msgspec.structs import replace

from dynamo_operator.component.api import GROUP, LATER
from dynamo_operator.requests import api
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.hardware import Hardware
from kube_runtime.types.meta import Metadata, Object, Struct, from_json, from_plain

SAVED = f"{GROUP}/dgdr-spec"
"""The annotation in which conversion preserves what v1alpha1 has no fields for."""


class Load(Struct):
    """`spec.workload`: requests at the same time, or per second."""

    concurrency: float | None = None
    request_rate: float | None = None


class Latency(Struct):
    """`spec.sla`: milliseconds of a whole request."""

    e2e_latency: float | None = None


class Overrides(Struct):
    """`spec.overrides`: a partial Job, without what the profiling configuration has, and a partial graph."""

    profiling_job: Object = {}
    dgd: Object | None = None

    @property
    def graph_name(self) -> str:
        """The name for the graph; "" if the partial graph has none."""
        metadata = (self.dgd or {}).get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        return name if isinstance(name, str) else ""


class Extras(Struct):
    """The fields, by their names in v1beta1."""

    hardware: Hardware = Hardware()
    workload: Load = Load()
    sla: Latency = Latency()
    overrides: Overrides = Overrides()
    search_strategy: Literal["rapid", "thorough"] = "rapid"


class _Accepted(Struct):
    extras: Extras = Extras()
    written_in: str = ""


_LATER: Final = f"{GROUP}/{LATER}"
_MARK: Final = b'"writtenIn"'


def accepted(request: Request) -> Extras:
    """The extras that count: those of the accepted spec, else the present ones."""
    text = api.accepted_text(request)
    return extras_of(request.metadata) if text is None else extras_in(text)


def extras_in(accepted_spec: msgspec.Raw) -> Extras:
    """The extras beside an accepted spec."""
    with suppress(msgspec.ValidationError, RecursionError):
        return from_json(accepted_spec, _Accepted).extras
    return Extras()


def with_extras(spec: RequestSpec, metadata: Metadata, *, is_later: bool = False) -> msgspec.Raw:
    """The spec as it is accepted, with the extras beside its fields unless there are none.

    `is_later`: it was written in v1beta1.
    """
    extras, version = extras_of(metadata), {"writtenIn": _LATER} if is_later else {}
    if extras == Extras() and not is_later:
        return api.as_text(spec)
    fields: Object = msgspec.json.decode(msgspec.json.encode(spec))
    return api.as_text({**fields, "extras": extras, **version})


def in_v1beta1(request: Request) -> bool:
    """Whether the request was accepted as one that was written in v1beta1."""
    is_later = is_text_in_v1beta1(request.status.accepted_spec)
    return is_later and api.accepted_text(request) is not None


def applies(request: Request) -> bool:
    """Whether the operator creates the graph: as the accepted spec says, or as it is requested later."""
    return api.accepted_spec(request).auto_apply or is_switched_on(request)


def is_switched_on(request: Request) -> bool:
    """Whether nothing but `autoApply` was changed in a spec of v1beta1, after its results were found."""
    spec, before = request.spec, api.accepted_spec(request)
    return (
        in_v1beta1(request)
        and api.has_results(request)
        and not before.auto_apply
        and spec is not None
        and spec == replace(before, auto_apply=True)
        and extras_of(request.metadata) == accepted(request)
    )


def is_text_in_v1beta1(accepted_spec: msgspec.Raw) -> bool:
    """Whether an accepted spec, of which others may have written the text, is of v1beta1."""
    if _MARK not in bytes(accepted_spec):
        return False
    with suppress(msgspec.ValidationError, RecursionError):
        return from_json(accepted_spec, _Accepted).written_in == _LATER
    return False


# The API server records the version of each write. Nothing else in the object tells: what is stored, and what
# an operator reads, may be another version than the one in which the user wrote.
def last_in_v1beta1(managed_fields: Iterable[Any]) -> bool:
    """Whether the last write of `spec.model` was in v1beta1, by `metadata.managedFields` of a request."""
    writes = [entry for entry in managed_fields if _MODEL in (entry.get("fieldsV1") or {}).get(_SPEC, {})]
    newest: Any = max(writes, key=lambda entry: str(entry.get("time") or ""), default={})
    return bool(newest.get("apiVersion") == _LATER)


_SPEC: Final = "f:spec"
_MODEL: Final = "f:model"


def with_hardware(metadata: Metadata, discovered: Object) -> dict[str, str]:
    """The annotation of a request that is stored in v1alpha1, with fields of its hardware added."""
    from dynamo_operator.versions.request import preserved_spec

    saved = preserved_spec({"annotations": metadata.annotations})
    return _annotation({**saved, "hardware": {**saved.get("hardware", {}), **discovered}})


def written_spec(request: Request, spec: RequestSpec, image: str) -> Object:
    """The accepted spec in v1beta1, for the profiler; `image` is the default of its own.

    Without `overrides.dgd`, which the operator merges into the results: twice, arguments would be appended
    twice.
    """
    from dynamo_operator.versions.request import to_v1beta1

    extras = accepted(request)
    saved = {**msgspec.to_builtins(extras), "searchStrategy": extras.search_strategy}
    fields = msgspec.json.decode(msgspec.json.encode(spec))
    written: Object = to_v1beta1({"metadata": {"annotations": _annotation(saved)}, "spec": fields})["spec"]
    overrides = {name: value for name, value in written.pop("overrides", {}).items() if name != "dgd"}
    return {"image": image, **written, **({"overrides": overrides} if overrides else {})}


def _annotation(spec: Object) -> dict[str, str]:
    return {SAVED: msgspec.json.encode({"version": 1, "spec": spec}).decode()}


def extras_of(metadata: Metadata) -> Extras:
    """The extras of a request; none where the annotation is missing or not one that conversion wrote."""
    if SAVED not in metadata.annotations:
        return Extras()
    from dynamo_operator.versions.request import preserved_spec  # only for clusters with two versions

    with suppress(msgspec.ValidationError):
        return from_plain(preserved_spec({"annotations": metadata.annotations}), Extras)
    return Extras()
