"""Events of a model report each change once."""

from dynamo_operator.models.api import DynamoModel, DynamoModelSpec, DynamoModelStatus, EndpointInfo
from dynamo_operator.models.status import model_status_events
from kube_runtime.types.meta import Condition


def a_model(reason: str, *, ready: int = 0, total: int = 2, failing: int = 0) -> DynamoModel:
    ends = tuple(
        EndpointInfo(address=str(number), ready=False, failures=int(number < failing))
        for number in range(total)
    )
    text = f"Found {ready} ready endpoint(s) out of {total} total; 1 of them: no"
    status = DynamoModelStatus(
        endpoints=ends,
        ready_endpoints=ready,
        total_endpoints=total,
        conditions=(Condition("EndpointsReady", "False", reason, text),),
    )
    return DynamoModel(spec=DynamoModelSpec("m", "base"), status=status)


def event_reasons(before: DynamoModel, after: DynamoModel) -> list[str]:
    return [event.reason for event in model_status_events(before, after)]


def test_first_loads_and_more_pods_are_no_event() -> None:
    new = DynamoModel(spec=DynamoModelSpec("m", "base"))
    assert [] == event_reasons(new, a_model("NoReadyEndpoints"))
    assert [] == event_reasons(a_model("AllEndpointsReady", ready=1, total=1), a_model("NotReady", ready=1))


def test_the_first_failure_is_reported_with_its_cause_and_the_next_is_not() -> None:
    before, after = a_model("NoReadyEndpoints"), a_model("NoReadyEndpoints", failing=1)
    first, second = model_status_events(before, after)
    text = "Some endpoints failed to load LoRA: 1 task(s) failed; 1 of them: no"
    assert ("PartialEndpointFailure", text) == (first.reason, first.message)
    assert "Only 0 of 2 endpoints ready for base model base" == second.message
    assert [] == event_reasons(after, a_model("NoReadyEndpoints", failing=2))


def test_a_pod_that_is_lost_and_all_that_are_back_are_reported() -> None:
    whole, part = a_model("AllEndpointsReady", ready=2), a_model("NotReady", ready=1)
    assert ["NotReady"] == event_reasons(whole, part)
    assert ["EndpointsReady"] == event_reasons(part, whole)
    assert [] == event_reasons(whole, whole)


def test_a_mistake_is_reported_once() -> None:
    wrong = Condition("Valid", "False", "ValidationFailed", "Validation failed: no name")
    invalid = DynamoModel(status=DynamoModelStatus(conditions=(wrong,)))
    (only,) = model_status_events(DynamoModel(), invalid)
    assert ("ValidationFailed", "no name", True) == (only.reason, only.message, only.is_warning)
    assert [] == event_reasons(invalid, invalid)
