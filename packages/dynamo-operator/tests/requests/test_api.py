"""A record counts for its own request only, and an accepted spec only if the record has its digest."""

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.requests import api
from kube_runtime.types.meta import Metadata
from simulated.requests import a_spec

SPEC = a_spec(auto_apply=True)
DEEP = msgspec.Raw(b"[" * 10_000 + b"]" * 10_000)


def accepted(spec: object = None) -> api.DynamoGraphDeploymentRequest:
    """A request that was accepted with its spec; another client may have replaced it in the status."""
    kept = api.as_text(SPEC)
    status = api.DynamoGraphDeploymentRequestStatus(accepted_spec=kept)
    request = api.DynamoGraphDeploymentRequest(Metadata("r", "n", uid="u", generation=1), SPEC, status)
    metadata = replace(request.metadata, annotations=api.annotation(api.with_spec(request)))
    return replace(
        request, metadata=metadata, status=replace(status, accepted_spec=api.as_text(spec or SPEC))
    )


@pytest.mark.parametrize("stored", [{"model": 1}, replace(SPEC, model="forged"), DEEP])
def test_an_accepted_spec_that_was_changed_in_the_status_is_not_used(stored: object) -> None:
    edited = a_spec(model="edited")
    assert SPEC == api.accepted_spec(replace(accepted(), spec=edited))
    assert edited == api.accepted_spec(replace(accepted(stored), spec=edited))


def test_a_record_of_another_request_or_none_at_all_is_no_record() -> None:
    request = accepted()
    assert api.recorded(request) is not None
    assert api.recorded(replace(request, metadata=replace(request.metadata, uid="copy"))) is None
    for text in ("", "{", "[]", '{"uid": "u"}', "[" * 100_000, "x" * 2000):
        metadata = replace(request.metadata, annotations={labels.REQUEST_RECORD: text})
        assert api.recorded(replace(request, metadata=metadata)) is None
