"""What a request in v1beta1 says that v1alpha1, with which the operator computes, has no fields for.

Conversion preserves it in an annotation, so it is in the request whichever version was read.
"""

from contextlib import suppress
from typing import Literal

import msgspec

from dynamo_operator.requests.hardware import Hardware
from dynamo_operator.versions.request import preserved_spec
from kube_runtime.types.meta import Metadata, Object, Struct, from_plain


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


class Extras(Struct):
    """The fields, by their names in v1beta1."""

    hardware: Hardware = Hardware()
    workload: Load = Load()
    sla: Latency = Latency()
    overrides: Overrides = Overrides()
    search_strategy: Literal["rapid", "thorough"] = "rapid"


def extras_of(metadata: Metadata) -> Extras:
    """The extras of a request; none where the annotation is missing or not one that conversion wrote."""
    with suppress(msgspec.ValidationError):
        return from_plain(preserved_spec({"annotations": metadata.annotations}), Extras)
    return Extras()
