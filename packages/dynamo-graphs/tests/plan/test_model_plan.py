"""What a model does next follows from its inputs alone."""

from dataclasses import replace
from datetime import UTC, datetime

import msgspec

from dynamo_operator.models.api import DynamoModel, DynamoModelSpec
from dynamo_operator.models.plan import (
    Endpoint,
    Lora,
    LoraVerb,
    ModelInputs,
    plan_model,
    plan_unloading,
)
from kube_runtime.types.kinds import EndpointSlice, Pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ADDRESS = "http://10.8.0.11:9090"
HASH = {"nvidia.com/dynamo-base-model-hash": "52e17085"}
SPEC = msgspec.convert(
    {
        "modelName": "support",
        "baseModelName": "orion/base-13b",
        "modelType": "lora",
        "source": {"uri": "s3://w"},
    },
    DynamoModelSpec,
)
MODEL = msgspec.convert(
    {"metadata": {"name": "support", "namespace": "team-b", "uid": "u1"}}, DynamoModel
)
POD = msgspec.convert(
    {
        "metadata": {"name": "a", "uid": "uid-a", "labels": HASH},
        "status": {"podIPs": [{"ip": "10.8.0.11"}]},
    },
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
LOADED = Endpoint(
    ADDRESS, "uid-a", is_callable=True, pod_name="a", loaded=Lora("support", "s3://w")
)


def test_a_pod_without_the_adapter_is_to_load_it() -> None:
    found = plan_model(MODEL, SPEC, ModelInputs(NOW, slices=(SLICE,), pods={"a": POD}))
    (work,) = found.due
    assert ADDRESS == work.endpoint.address
    assert LoraVerb.LOAD in [each.verb for each in work.calls]
    assert found.needs_finalizer
    assert ("dynamo-model-52e17085",) == found.services


def test_nothing_is_called_where_calls_are_disabled() -> None:
    inputs = ModelInputs(NOW, slices=(SLICE,), pods={"a": POD}, silence="calls are disabled")
    found = plan_model(MODEL, SPEC, inputs)
    assert ((), ()) == (found.due, found.requeue_after_seconds)
    assert not found.needs_finalizer


def test_an_endpoint_with_a_running_call_is_seen_with_what_that_may_do() -> None:
    running = replace(LOADED, tried=Lora("support", "s3://other"))
    inputs = ModelInputs(
        NOW,
        slices=(SLICE,),
        pods={"a": POD},
        recorded={LOADED.id: LOADED},
        running={LOADED.id: running},
    )
    found = plan_model(MODEL, SPEC, inputs)
    assert ((), (running,)) == (found.due, found.seen)


def test_a_model_that_is_deleted_unloads_what_running_pods_have() -> None:
    gone = Endpoint("http://10.8.0.12:9090", "uid-b", is_callable=True, pod_name="b")
    recorded = {each.id: each for each in (LOADED, gone)}
    inputs = ModelInputs(NOW, pods={"a": POD}, recorded=recorded)
    deleted = msgspec.structs.replace(MODEL, spec=SPEC)
    assert [LOADED.id] == [each.id for each in plan_unloading(deleted, inputs)]
    assert not inputs.is_gone(LOADED)
    assert inputs.is_gone(gone)


def test_a_model_keeps_its_finalizer_while_a_pod_that_left_it_has_its_lora() -> None:
    base = msgspec.structs.replace(SPEC, model_type="base", source=None)
    inputs = ModelInputs(NOW, pods={"a": POD}, recorded={LOADED.id: LOADED})
    planned = plan_model(MODEL, base, inputs)
    assert () == planned.present
    assert planned.needs_finalizer
