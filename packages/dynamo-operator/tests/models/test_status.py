"""The status of a model says how many endpoints serve it, and what keeps the others."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

import msgspec
import pytest

from dynamo_operator.models.api import (
    DynamoModel,
    DynamoModelSpec,
    DynamoModelStatus,
    EndpointInfo,
    ModelSource,
)
from dynamo_operator.models.plan import SERVICE_NAME, Endpoint, Lora, ModelInputs
from dynamo_operator.models.status import invalid_status, model_status, model_status_events
from dynamo_operator.models.validate import model_problems
from kube_runtime.types.kinds import EndpointSlice
from kube_runtime.types.meta import Condition, Metadata

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BASE = "orion/base-13b"
LOADED = Lora("legal-v2", "s3://vault/legal-v2")


def spec(type_: Literal["base", "lora", "adapter"] = "lora") -> DynamoModelSpec:
    return DynamoModelSpec(LOADED.name, BASE, type_, ModelSource(LOADED.uri))


def worker(name: str, *, loaded: Lora | None = LOADED) -> Endpoint:
    address = f"http://{name}:9090"
    return Endpoint(address, f"uid-{name}", is_callable=True, pod_name=name, loaded=loaded)


def status_of(*endpoints: Endpoint, model: DynamoModelSpec | None = None) -> DynamoModelStatus:
    a_model = DynamoModel(metadata=Metadata(generation=3), spec=model or spec())
    slices = (EndpointSlice(Metadata(labels={SERVICE_NAME: "dynamo-model-52e17085"})),)
    return model_status(a_model, model or spec(), ModelInputs(slices), NOW, endpoints=endpoints)


def ready(status: DynamoModelStatus) -> tuple[str, str, str]:
    condition: Condition = status.conditions[-1]
    assert ("EndpointsReady", 3) == (condition.type, condition.observed_generation)
    return condition.status, condition.reason, condition.message


def info(name: str) -> EndpointInfo:
    """The state of a worker that has loaded the LoRA."""
    return EndpointInfo(
        address=f"http://{name}:9090",
        pod_name=name,
        pod_uid=f"uid-{name}",
        ready=True,
        loaded_name=LOADED.name,
        loaded_uri=LOADED.uri,
    )


def test_a_lora_that_is_everywhere_is_ready() -> None:
    status = status_of(worker("a"), worker("b"))
    assert (info("a"), info("b")) == status.endpoints
    assert (2, 2) == (status.ready_endpoints, status.total_endpoints)
    assert ["ValidationPassed", "ServicesFound", "AllEndpointsReady"] == [
        condition.reason for condition in status.conditions
    ]
    assert ("True", "AllEndpointsReady", "All 2 endpoint(s) are ready") == ready(status)


def test_the_most_frequent_cause_is_reported() -> None:
    failed = replace(worker("b", loaded=None), message="download failed")
    waiting = replace(worker("c"), is_callable=False)
    others = [failed, replace(failed, address="http://d:9090"), waiting]
    text = "Found 1 ready endpoint(s) out of 4 total; 2 of them: download failed"
    assert ("False", "NotReady", text) == ready(status_of(worker("a"), *others))


@pytest.mark.parametrize(
    ("endpoint", "cause"),
    [
        pytest.param(replace(worker("a"), is_callable=False), "; 1 of them: waiting for pod", id="not ready"),
        pytest.param(worker("a", loaded=Lora("legal-v2", "s3://vault/old")), "", id="old weights"),
    ],
)
def test_an_endpoint_serves_the_wanted_weights_from_a_ready_pod(endpoint: Endpoint, cause: str) -> None:
    text = f"Found 0 ready endpoint(s) out of 1 total{cause}"
    assert ("False", "NoReadyEndpoints", text) == ready(status_of(endpoint))


@pytest.mark.parametrize("type_", ["base", "adapter"])
def test_endpoints_of_a_base_model_are_found_and_never_ready(type_: Literal["base", "adapter"]) -> None:
    status = status_of(worker("a"), worker("b"), model=spec(type_))
    assert (0, 2) == (status.ready_endpoints, status.total_endpoints)
    text = "Found 2 endpoint(s) for base model"
    assert ("True", "EndpointsDiscovered", text) == ready(status)


def test_an_invalid_model_reports_its_problems() -> None:
    model = DynamoModel(spec=DynamoModelSpec("", BASE))
    (condition,) = invalid_status(model, model_problems(model)).conditions
    assert ("Valid", "False", "ValidationFailed") == (condition.type, condition.status, condition.reason)
    assert "spec.modelName is required" in condition.message


def test_a_status_is_never_too_large_to_be_stored() -> None:
    long = Lora("legal-v2", "s3://vault/" + "x" * 900)
    ends = [replace(worker(f"pod-{number}", loaded=long), message="ü" * 250) for number in range(3000)]
    model = DynamoModelSpec(long.name, BASE, "lora", ModelSource(long.uri))
    status = status_of(*ends, model=model)
    assert len(msgspec.json.encode(status)) < 1_400_000
    assert 3000 == status.total_endpoints
    left = 3000 - len(status.endpoints)
    assert 0 < left
    state, reason, message = ready(status)
    assert ("False", "NotReady") == (state, reason)
    assert f"skipped {left} endpoint(s): the status has no room for them" in message


def test_a_status_at_its_size_limit_keeps_endpoints_with_a_lora() -> None:
    long = Lora("legal-v2", "s3://vault/" + "x" * 9000)
    nothing = [worker(f"a-{number}", loaded=None) for number in range(9000)]
    model = DynamoModelSpec(long.name, BASE, "lora", ModelSource(long.uri))
    status = status_of(*nothing, worker("z", loaded=long), model=model)
    assert "z" in [endpoint.pod_name for endpoint in status.endpoints]


def test_messages_of_a_thousand_pods_are_whole() -> None:
    ends = [replace(worker(f"{number}", loaded=None), message="m" * 250) for number in range(1000)]
    assert {250} == {len(endpoint.message) for endpoint in status_of(*ends).endpoints}


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
