"""What a request in v1beta1 says that v1alpha1, with which the operator computes, has no fields for.

Conversion preserves it in an annotation, so it is in the request whichever version was read.
"""

from contextlib import suppress
from typing import Literal

import msgspec

from dynamo_operator.component.api import GROUP
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


def accepted(request: Request) -> Extras:
    """The extras that count: those of the accepted spec, else the present ones."""
    text = api.accepted_text(request)
    return extras_of(request.metadata) if text is None else extras_in(text)


def extras_in(accepted_spec: msgspec.Raw) -> Extras:
    """The extras beside an accepted spec."""
    with suppress(msgspec.ValidationError, RecursionError):
        return from_json(accepted_spec, _Accepted).extras
    return Extras()


def with_extras(spec: RequestSpec, metadata: Metadata) -> msgspec.Raw:
    """The spec as it is accepted, with the extras beside its fields unless there are none."""
    extras = extras_of(metadata)
    if extras == Extras():
        return api.as_text(spec)
    fields: Object = msgspec.json.decode(msgspec.json.encode(spec))
    return api.as_text({**fields, "extras": extras})


def extras_of(metadata: Metadata) -> Extras:
    """The extras of a request; none where the annotation is missing or not one that conversion wrote."""
    if SAVED not in metadata.annotations:
        return Extras()
    from dynamo_operator.versions.request import preserved_spec  # only for clusters with two versions

    with suppress(msgspec.ValidationError):
        return from_plain(preserved_spec({"annotations": metadata.annotations}), Extras)
    return Extras()
