"""An adapter acts only where it may, and its status says what is observed, as our own schema has it."""

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
from dynamo_operator.features.scaling.decide import adapter_problems, decide, refused_by_server
from kube_runtime.apply.result import Blocked, Obstacle
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


NOW = "2026-01-01T00:00:00Z"
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
def test_it_is_scaled_when_the_newest_graph_has_that_many(live: Any, expected: tuple[str, str, str]) -> None:
    status = decide(adapter(), SPEC, live, NOW).status
    condition = ready(status)
    assert expected == (condition.status, condition.reason, condition.message.removeprefix(WHOLE))
    assert 5 == condition.observed_generation == status.observed_generation
    assert 3 == status.desired_replicas


def test_replicas_are_those_that_were_observed() -> None:
    assert 1 == decide(adapter(), SPEC, graph(1), NOW).status.replicas
    assert decide(adapter(), SPEC, graph(), NOW).status.replicas is None


def test_it_writes_a_number_that_the_graph_does_not_have() -> None:
    decision = decide(adapter(), SPEC, graph(1), NOW)
    assert (3, NOW, False) == (decision.replicas, decision.status.last_scale_time, decision.is_paced)
    there = decide(adapter(), SPEC, graph(3, **THREE), NOW)
    assert (None, NOW) == (there.replicas, there.status.last_scale_time), "written just before a stop"


def test_a_refused_number_is_not_reported_as_observed() -> None:
    blocked = Blocked(Obstacle.REJECTED, "DynamoGraphDeployment", "chat", "DynamoGraphDeployment chat: no")
    decision = refused_by_server(adapter(), SPEC, graph(1), blocked)
    assert ("False", "Failed to update DGD chat: no") == (ready(decision.status).status, decision.event)
    assert (0, 7) == (decision.status.observed_generation, decision.status.desired_replicas)


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
def test_it_acts_only_where_it_may(by: Any, in_: Any, expected: str) -> None:
    decision = decide(by, SPEC, in_, NOW)
    assert expected == ready(decision.status).reason
    assert (3 if expected == "scaling" else None) == decision.replicas
    if expected != "scaling":
        assert 7 == decision.status.desired_replicas, "what was requested last stays"
        assert ("Unknown" if expected == "paused" else "False") == ready(decision.status).status


@pytest.mark.parametrize(
    ("name", "service"), [("../../victim", "decode"), ("chat", "../.."), ("chat", "x" * 254)]
)
def test_a_name_that_nothing_can_have_is_reported_as_such(name: str, service: str) -> None:
    spec = DynamoGraphDeploymentScalingAdapterSpec(3, ServiceReference(name, service))
    (problem,) = adapter_problems(msgspec.structs.replace(adapter(), spec=spec))
    live = graph() if name == "chat" else None
    decision = decide(msgspec.structs.replace(adapter(), spec=spec), spec, live, NOW)
    assert (None, str(problem)) == (decision.replicas, ready(decision.status).message)


def test_who_set_the_replicas_is_the_last_of_those_that_own_them() -> None:
    owners = [
        {"manager": "early", "time": "2026-01-01T00:00:00Z", "fieldsV1": REPLICAS},
        {"manager": "late", "time": "2026-01-02T00:00:00Z", "fieldsV1": REPLICAS},
        {"manager": "other", "time": "2026-01-03T00:00:00Z", "fieldsV1": {"f:spec": {}}},
        {"manager": "status", "time": "2026-01-04T00:00:00Z", "fieldsV1": {"f:status": {}}},
    ]
    managers = msgspec.convert(owners, tuple[FieldOwner, ...])
    assert "late" == ScaledMetadata(managed_fields=managers).replicas_set_by
    assert "" == ScaledMetadata(managed_fields=managers[2:]).replicas_set_by


@pytest.mark.parametrize("live", [graph(3), graph(0), graph(), None, a_graph({})])
def test_our_schema_takes_our_status(live: Any) -> None:
    status = decide(adapter(), SPEC, live, "2026-01-01T00:00:00Z").status
    condition = msgspec.structs.replace(ready(status), last_transition_time="2026-01-01T00:00:00Z")
    stored = msgspec.json.decode(msgspec.json.encode(status.with_conditions([condition])))
    assert () == status_problems(DynamoGraphDeploymentScalingAdapter, stored)
