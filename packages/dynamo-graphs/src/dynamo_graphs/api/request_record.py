"""The record of a DynamoGraphDeploymentRequest: what the operator has done for it, in an annotation.

A user who may write the status of a request may not create what the request creates, and perhaps not even
change the request. So the status only reports. What the next action depends on is in the record, which
only users who may change the spec too can write: the status is a subresource, and its writers cannot write
metadata (docs/decisions/0067-a-status-is-not-an-order.md).

The accepted spec and the results are too large for an annotation. They stay in the status, and count if they
have the recorded digest.
"""

import hashlib
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct

_LONGEST = 1024
"""Characters of the annotation; a record has less than 400."""


class Record(Struct):
    """What the operator has done. The fields are filled in their order.

    `uid` is that of the request, so that a copied manifest has no record. `generation` and `spec` are the
    generation and the digest of the accepted spec, `job` is the uid of the Job, `results` the digest of the
    graph and the ConfigMaps that profiling found; "" until then. `created`: the graph was created.
    """

    uid: str
    generation: int
    spec: str
    job: str = ""
    results: str = ""
    created: bool = False


def recorded(request: DynamoGraphDeploymentRequest) -> Record | None:
    """The record of the request; None if it has none, such as a request of an earlier operator."""
    text = request.metadata.annotations.get(labels.REQUEST_RECORD, "")
    if not text or len(text) > _LONGEST:
        return None
    with suppress(msgspec.MsgspecError, RecursionError):
        record = msgspec.json.decode(text, type=Record)
        return record if record.uid == request.metadata.uid else None
    return None


def annotation(record: Record) -> dict[str, str]:
    """The annotation with the record."""
    return {labels.REQUEST_RECORD: msgspec.json.encode(record).decode()}


def with_spec(request: DynamoGraphDeploymentRequest) -> Record:
    """The record once the status has the accepted spec. It is empty: nothing was done for this spec."""
    metadata, accepted = request.metadata, request.status.accepted_spec
    return Record(metadata.uid, metadata.generation, _digest(accepted))


def with_job(request: DynamoGraphDeploymentRequest, uid: str) -> Record:
    """The record once the Job of that uid exists."""
    return replace(_present(request), job=uid)


def with_results(request: DynamoGraphDeploymentRequest) -> Record:
    """The record once the status has the results."""
    return replace(_present(request), results=results_digest(request))


def with_graph(request: DynamoGraphDeploymentRequest) -> Record:
    """The record once the graph exists."""
    return replace(_present(request), created=True)


def accepted_spec(request: DynamoGraphDeploymentRequest) -> DynamoGraphDeploymentRequestSpec:
    """Return the spec that counts: the accepted one, else the present one.

    Raises:
        ValueError: the request has neither.
    """
    record, accepted = recorded(request), request.status.accepted_spec
    if accepted is not None and record is not None and record.spec == _digest(accepted):
        with suppress(msgspec.ValidationError):  # of a release with other fields
            return msgspec.convert(accepted, DynamoGraphDeploymentRequestSpec)
    if request.spec is None:
        raise ValueError("spec is missing")
    return request.spec


def as_accepted(spec: DynamoGraphDeploymentRequestSpec) -> Object:
    """The spec in the form that the status stores."""
    kept: Object = msgspec.json.decode(msgspec.json.encode(spec))
    return kept


def accepted_generation(request: DynamoGraphDeploymentRequest) -> int:
    """The generation of the accepted spec; 0 if none was accepted."""
    record = recorded(request)
    return request.status.observed_generation if record is None else record.generation


def has_results(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether the results in the status are those that the operator read."""
    record = recorded(request)
    return record is not None and record.results == results_digest(request) != ""


def results_digest(request: DynamoGraphDeploymentRequest) -> str:
    """The digest of the graph and the ConfigMaps in the status; "" without a graph."""
    status = request.status
    if status.generated_deployment is None:
        return ""
    return _digest((status.generated_deployment, status.additional_resources))


def _present(request: DynamoGraphDeploymentRequest) -> Record:
    """The record to extend. A request of an earlier operator gets its present spec as the accepted one."""
    record = recorded(request)
    if record is not None:
        return record
    spec = accepted_spec(request)
    return Record(request.metadata.uid, request.metadata.generation, _digest(as_accepted(spec)))


def _digest(value: object) -> str:
    """The digest of a value as the API server returned it, which may differ from what was sent."""
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()
