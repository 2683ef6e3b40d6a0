"""An adapter acts only where it may, and its status says what is observed, as our own schema has it."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dynamo_graphs.schema import status_problems
from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.features.scaling.api import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    DynamoGraphDeploymentScalingAdapterStatus,
    ServiceReference,
)
from dynamo_operator.features.scaling.decide import (
    ScalingDecision,
    ScalingInputs,
    adapter_problems,
    after_failure,
    decide,
)
from kube_runtime.apply.result import Blocked, Obstacle, Obstructed
from kube_runtime.errors import NotFound
from kube_runtime.types.meta import Condition, FieldOwner, Object, OwnerReference, ScaledMetadata, Status
from specs import a_graph, a_service

WHOLE = "Service decode of graph chat "
REPLICAS: Object = {"f:spec": {"f:replicas": {}}}
SPEC = DynamoGraphDeploymentScalingAdapterSpec(3, ServiceReference("chat", "decode"))


def graph(observed: int | None = None, generation: int = 2, **fields: Any) -> Any:
    service = {"scalingAdapter": {"enabled": True}, **fields.pop("service", {})}
    metadata = {"uid": "u", "generation": 2, **fields.pop("metadata", {})}
    new = a_graph({"decode": a_service(**service)}, metadata=metadata)
    services = {}
    if observed is not None:
        services["decode"] = ServiceReplicaStatus(
            "Deployment", "chat-decode", replicas=observed, updated_replicas=observed
        )
    status = msgspec.structs.replace(new.status, observed_generation=generation, services=services)
    return msgspec.structs.replace(new, status=status)


def adapter(name: str = "chat-decode", uid: str = "u", **metadata: Any) -> Any:
    owner = OwnerReference("DynamoGraphDeployment", "chat", uid, controller=True)
    owners = (owner,) if uid else ()
    whole = ScaledMetadata(name, "prod", generation=5, owner_references=owners, **metadata)
    status = DynamoGraphDeploymentScalingAdapterStatus(desired_replicas=7)
    return DynamoGraphDeploymentScalingAdapter(whole, SPEC, status)


def ready(status: Status) -> Condition:
    (condition,) = status.conditions
    return condition


NOW, SCALED_AT = datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z"


def decided(by: Any, live: Any) -> Any:
    return decide(by, ScalingInputs(live), NOW)


THREE: Any = {"service": {"replicas": 3}}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (graph(3, **THREE), ("True", "scaled", "has 3 replicas")),
        (graph(1, **THREE), ("False", "scaling", "is scaling to 3 replicas")),
        (graph(**THREE), ("False", "scaling", "is scaling to 3 replicas")),
        (graph(3, generation=1, **THREE), ("False", "scaling", "is scaling to 3 replicas")),
        (graph(3), ("False", "scaling", "is scaling to 3 replicas")),  # 3 by chance: they are written now
    ],
)
def test_an_adapter_is_scaled_once_the_graph_has_its_replicas(
    live: Any, expected: tuple[str, str, str]
) -> None:
    status = decided(adapter(), live).status
    condition = ready(status)
    assert expected == (condition.status, condition.reason, condition.message.removeprefix(WHOLE))
    assert 5 == condition.observed_generation == status.observed_generation
    assert 3 == status.desired_replicas


def test_replicas_are_those_that_were_observed() -> None:
    assert 1 == decided(adapter(), graph(1)).status.replicas
    assert decided(adapter(), graph()).status.replicas is None


def test_an_adapter_writes_replicas_only_if_the_graph_differs() -> None:
    decision = decided(adapter(), graph(1))
    assert ("decode", 3, False) == (decision.service, decision.replicas, decision.may_wait)
    assert SCALED_AT == decision.status.last_scale_time
    there = decided(adapter(), graph(3, **THREE))
    assert (None, SCALED_AT) == (there.replicas, there.status.last_scale_time), "written just before a stop"


def test_a_refused_number_is_not_reported_as_observed() -> None:
    blocked = Blocked(Obstacle.REJECTED, "DynamoGraphDeployment", "chat", "DynamoGraphDeployment chat: no")
    decision: Any = after_failure(adapter(), ScalingInputs(graph(1)), Obstructed(blocked))
    assert ("False", "Failed to update DGD chat: no") == (ready(decision.status).status, decision.event)
    assert (0, 7) == (decision.status.observed_generation, decision.status.desired_replicas)


def test_an_adapter_writes_nothing_while_its_graph_is_deleted() -> None:
    assert ScalingDecision() == decide(adapter(), ScalingInputs(graph(), is_unusable=True), NOW)
    gone = NotFound(404, "NotFound", "gone")
    assert ScalingDecision() == after_failure(adapter(), ScalingInputs(graph()), gone)


@pytest.mark.parametrize(
    ("by", "in_", "expected"),
    [
        (adapter(), graph(), "scaling"),
        (adapter(), None, "dgd_not_found"),
        (adapter(), a_graph({}), "service_not_found"),
        (adapter(), graph(service={"scalingAdapter": {"enabled": False}}), "disabled"),
        (adapter("mine"), graph(), "superseded"),
        (adapter(uid="earlier"), graph(), "superseded"),
        (adapter(uid=""), graph(), "superseded"),
        (adapter(), graph(metadata={"annotations": {"nvidia.com/suspend": "true"}}), "suspended"),
        (adapter(), graph(metadata={"annotations": {"nvidia.com/paused": "true"}}), "paused"),
        (adapter(annotations={"nvidia.com/paused": "true"}), None, "paused"),
        (adapter(annotations={"nvidia.com/paused": "yes"}), graph(), "scaling"),
    ],
)
def test_an_adapter_scales_only_a_graph_that_allows_it(by: Any, in_: Any, expected: str) -> None:
    decision = decided(by, in_)
    assert expected == ready(decision.status).reason
    assert (3 if expected == "scaling" else None) == decision.replicas
    if expected != "scaling":
        assert 7 == decision.status.desired_replicas, "what was requested last stays"
        assert ("Unknown" if expected == "paused" else "False") == ready(decision.status).status


@pytest.mark.parametrize(
    ("name", "service"), [("../../victim", "decode"), ("chat", "../.."), ("chat", "x" * 254)]
)
def test_an_invalid_graph_or_service_name_is_reported(name: str, service: str) -> None:
    spec = DynamoGraphDeploymentScalingAdapterSpec(3, ServiceReference(name, service))
    (problem,) = adapter_problems(msgspec.structs.replace(adapter(), spec=spec))
    live = graph() if name == "chat" else None
    decision = decided(msgspec.structs.replace(adapter(), spec=spec), live)
    assert (None, str(problem)) == (decision.replicas, ready(decision.status).message)


def test_replicas_were_set_by_their_latest_field_manager() -> None:
    owners = [
        {"manager": "early", "time": "2026-01-01T00:00:00Z", "fieldsV1": REPLICAS},
        {"manager": "late", "time": "2026-01-02T00:00:00Z", "fieldsV1": REPLICAS},
        {"manager": "other", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:spec": {}}},
        {"manager": "status", "time": "2026-01-04T00:00:00Z", "fieldsV1": {"f:status": {}}},
    ]
    managers = msgspec.convert(owners, tuple[FieldOwner, ...])
    assert "late" == ScaledMetadata(managed_fields=managers).replicas_set_by
    text = "Scaled service decode from 1 to 3 replicas, requested by late"
    assert text == decided(adapter(managed_fields=managers), graph(1)).event
    assert "" == ScaledMetadata(managed_fields=managers[2:]).replicas_set_by


@pytest.mark.parametrize("live", [graph(3), graph(0), graph(), None, a_graph({})])
def test_our_schema_takes_our_status(live: Any) -> None:
    status = decided(adapter(), live).status
    condition = msgspec.structs.replace(ready(status), last_transition_time="2026-01-01T00:00:00Z")
    stored = msgspec.json.decode(msgspec.json.encode(status.with_conditions([condition])))
    assert () == status_problems(DynamoGraphDeploymentScalingAdapter, stored)
