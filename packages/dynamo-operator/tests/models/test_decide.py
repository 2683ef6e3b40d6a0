"""What a model does now follows from its spec, its pods, and what was recorded."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dynamo_operator.labels import FINALIZER, PAUSED
from dynamo_operator.models.api import DynamoModel, DynamoModelSpec, DynamoModelStatus, ModelSource
from dynamo_operator.models.decide import Unload, chosen, decide
from dynamo_operator.models.plan import Endpoint, Lora, LoraVerb, ModelInputs, Unloading, Work
from kube_runtime.types.kinds import EndpointSlice, Pod
from kube_runtime.types.meta import Condition, Metadata

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HASH = {"nvidia.com/dynamo-base-model-hash": "52e17085"}
ADDRESS = "http://10.8.0.11:9090"
SPEC = msgspec.convert(
    {
        "modelName": "support",
        "baseModelName": "orion/base-13b",
        "modelType": "lora",
        "source": {"uri": "s3://w"},
    },
    DynamoModelSpec,
)
METADATA = Metadata("support", "team-b", "u1")
DELETED = DynamoModel(
    msgspec.structs.replace(METADATA, finalizers=(FINALIZER,), deletion_timestamp="2026-01-01T00:00:00Z"),
    SPEC,
)
POD = msgspec.convert(
    {"metadata": {"name": "a", "uid": "uid-a", "labels": HASH}, "status": {"podIPs": [{"ip": "10.8.0.11"}]}},
    Pod,
)
SLICE = msgspec.convert(
    {
        "metadata": {
            "name": "s",
            "namespace": "team-b",
            "labels": HASH | {"kubernetes.io/service-name": "dynamo-model-52e17085"},
        },
        "endpoints": [
            {
                "addresses": ["10.8.0.11"],
                "conditions": {"ready": True},
                "targetRef": {"kind": "Pod", "name": "a", "uid": "uid-a"},
            }
        ],
    },
    EndpointSlice,
)
LOADED = Endpoint(ADDRESS, "uid-a", is_callable=True, pod_name="a", loaded=Lora("support", "s3://w"))


def decided(spec: DynamoModelSpec = SPEC, **inputs: Any) -> Any:
    return decide(DynamoModel(METADATA, spec), ModelInputs(pods={"a": POD}, **inputs), NOW)


def test_a_pod_without_the_adapter_is_to_load_it() -> None:
    found = decided(slices=(SLICE, SLICE))
    (work,) = found.due  # one, although two slices have the pod
    assert ADDRESS == work.endpoint.address
    assert LoraVerb.LOAD in [each.verb for each in work.calls]
    assert found.needs_finalizer
    (info,) = found.status.endpoints
    assert ("support", "s3://w") == (info.tried_name, info.tried_uri), "recorded before it is loaded"


def test_nothing_is_called_where_calls_are_disabled() -> None:
    found = decided(slices=(SLICE,), silence="calls are disabled")
    assert ((), (), False) == (found.due, found.requeue_after_seconds, found.needs_finalizer)


def test_an_endpoint_with_a_running_call_is_seen_with_what_that_may_do() -> None:
    running = replace(LOADED, tried=Lora("support", "s3://other"))
    found = decided(slices=(SLICE,), recorded={LOADED.id: LOADED}, running={LOADED.id: running})
    (info,) = found.status.endpoints
    assert ((), "s3://other") == (found.due, info.tried_uri)


@pytest.mark.parametrize(
    ("reason", "paused", "uri", "is_left"),
    [
        ("AdapterNameTaken", "", "s3://other", True),
        ("NoReadyEndpoints", "", "s3://other", False),
        ("AdapterNameTaken", "true", "s3://other", False),
        ("AdapterNameTaken", "", "https://other", False),
    ],
)
def test_only_to_a_model_that_waits_for_the_name_and_can_load_it_a_lora_is_left(
    reason: str, paused: str, uri: str, *, is_left: bool
) -> None:
    other = DynamoModel(
        Metadata("other", "team-b", "u2", annotations={PAUSED: paused}),
        msgspec.structs.replace(SPEC, source=ModelSource(uri)),
        DynamoModelStatus(conditions=(Condition("EndpointsReady", "False", reason=reason),)),
    )
    renamed = msgspec.structs.replace(SPEC, model_name="new")
    found = decided(renamed, slices=(SLICE,), siblings=(other,), recorded={LOADED.id: LOADED})
    unloaded = {call.name for work in found.due for call in work.calls if call.verb is LoraVerb.UNLOAD}
    assert (set() if is_left else {"support"}) == unloaded


def test_an_invalid_model_changes_nothing_and_calls_nobody() -> None:
    spec = msgspec.structs.replace(SPEC, source=None)
    found = decided(spec, slices=(SLICE,), recorded={LOADED.id: LOADED})
    assert ((), None, None) == (found.due, found.known, found.needs_finalizer)
    assert [("Valid", "False")] == [(each.type, each.status) for each in found.status.conditions]


def test_a_model_that_is_deleted_unloads_what_running_pods_have() -> None:
    gone = Endpoint("http://10.8.0.12:9090", "uid-b", is_callable=True, pod_name="b")
    recorded = {each.id: each for each in (LOADED, gone)}
    found = decide(DELETED, ModelInputs(pods={"a": POD}, recorded=recorded, running=recorded), NOW)
    assert [LOADED.id] == [endpoint.id for endpoint in found.known or ()]
    assert (Unload.START, (gone.id,)) == (found.unload, found.gone)


@pytest.mark.parametrize(
    ("inputs", "expected", "event"),
    [
        ({"unloading": Unloading(is_done=False)}, Unload.WAIT, ""),
        ({"unloading": Unloading(is_done=True, failed=None)}, Unload.RETRY, ""),
        ({"unloading": Unloading(is_done=True, failed=0)}, Unload.END, "Unloaded LoRA from 1 endpoint(s)"),
        (
            *({"unloading": Unloading(is_done=True, failed=2)}, Unload.END),
            "Failed to unload LoRA from some endpoints: 2 task(s) failed",
        ),
        ({"silence": "calls are off"}, Unload.END, "1 endpoint(s) keep the LoRA: calls are off"),
        ({"recorded": {}}, Unload.END, ""),
    ],
)
def test_a_deleted_model_goes_when_its_unloading_has_ended(inputs: Any, expected: Unload, event: str) -> None:
    found = decide(
        DELETED, ModelInputs(**{"pods": {"a": POD}, "recorded": {LOADED.id: LOADED}, **inputs}), NOW
    )
    assert (None, expected) == (found.status, found.unload)
    assert event == (found.event.message if found.event else "")
    assert (expected is Unload.RETRY) == bool(found.requeue_after_seconds)
    unfinalized = DynamoModel(msgspec.structs.replace(DELETED.metadata, finalizers=()), SPEC)
    assert Unload.END is decide(unfinalized, ModelInputs(**inputs), NOW).unload


@pytest.mark.parametrize(
    ("failures", "running_after_failure", "started"), [(0, 0, 3), (1, 0, 2), (1, 1, 1), (1, 2, 0)]
)
def test_endpoints_that_failed_before_get_half_of_the_slots(
    failures: int, running_after_failure: int, started: int
) -> None:
    works = tuple(Work(replace(LOADED, failures=failures), ()) for _ in range(3))
    inputs = ModelInputs(room=4, running={("", ""): LOADED}, running_after_failure=running_after_failure)
    assert started == len(chosen(works, inputs))


def test_a_model_keeps_its_finalizer_while_a_pod_that_left_it_has_its_lora() -> None:
    base = msgspec.structs.replace(SPEC, model_type="base", source=None)
    found = decided(base, recorded={LOADED.id: LOADED})
    assert ((), True) == (found.status.endpoints, found.needs_finalizer)
