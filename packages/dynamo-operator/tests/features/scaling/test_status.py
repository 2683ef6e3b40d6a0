"""An adapter's status says what is observed, in a form that our own schema takes."""

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
from dynamo_operator.features.scaling.status import (
    acting_status,
    held_status,
    hold,
)
from dynamo_operator.graph.service import graph_selector, selector
from kube_runtime.types.meta import (
    Condition,
    FieldOwner,
    Object,
    OwnerReference,
    ScaledMetadata,
    Status,
)
from specs import a_graph, a_service

OURS = "nvidia.com/dynamo-graph-deployment-name=chat,nvidia.com/dynamo-component=decode"
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


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        (graph(3), ("True", "scaled", "has 3 replicas")),
        (graph(1), ("False", "scaling", "is scaling to 3 replicas")),
        (graph(), ("False", "scaling", "is scaling to 3 replicas")),
        (graph(3, generation=1), ("False", "scaling", "is scaling to 3 replicas")),
    ],
)
def test_it_is_scaled_when_the_newest_graph_has_that_many(live: Any, expected: tuple[str, str, str]) -> None:
    status = acting_status(adapter(), SPEC, live, None)
    condition = ready(status)
    assert expected == (condition.status, condition.reason, condition.message.removeprefix(WHOLE))
    assert 5 == condition.observed_generation == status.observed_generation
    assert 3 == status.desired_replicas


def test_replicas_are_those_that_were_observed() -> None:
    assert 1 == acting_status(adapter(), SPEC, graph(1), None).replicas
    assert acting_status(adapter(), SPEC, graph(), None).replicas is None


@pytest.mark.parametrize(
    ("by", "in_", "expected"),
    [
        (adapter(), graph(), None),
        (adapter(), None, "dgd_not_found"),
        (adapter(), a_graph({}), "service_not_found"),
        (adapter(), graph(service={"scalingAdapter": {"enabled": False}}), "disabled"),
        (adapter("mine"), graph(), "superseded"),
        (adapter(uid="earlier"), graph(), "superseded"),
        (adapter(uid=""), graph(), "superseded"),
        (adapter(), graph(metadata={"annotations": {"nvidia.com/suspend": "true"}}), "suspended"),
        (adapter(), graph(metadata={"annotations": {"nvidia.com/paused": "true"}}), "paused"),
        (adapter(annotations={"nvidia.com/paused": "true"}), None, "paused"),
        (adapter(annotations={"nvidia.com/paused": "yes"}), graph(), None),
    ],
)
def test_it_acts_only_where_it_may(by: Any, in_: Any, expected: str | None) -> None:
    why = hold(by, SPEC, in_)
    assert expected == (why.reason if why else None)
    if why is not None:
        status = held_status(by, SPEC, in_, why)
        assert 7 == status.desired_replicas, "what was requested last stays"
        assert ("Unknown" if expected == "paused" else "False") == ready(status).status


def test_an_autoscaler_sees_one_pod_of_each_replica() -> None:
    many = {"multinode": {"nodeCount": 2}}
    grove = {"annotations": {"nvidia.com/workload-provider": "grove"}}
    assert OURS == selector(graph(), "decode", 2)
    assert f"{OURS},role=leader" == selector(graph(service=many), "decode", 2)
    on_grove = graph(service=many, metadata=grove)
    first, second = (f"chat-0-decode-{index}-decode-ldr" for index in (0, 1))
    assert f"{OURS},grove.io/podclique in ({first},{second})" == selector(on_grove, "decode", 2)
    assert f"{OURS},grove.io/podclique in ({first})" == selector(on_grove, "decode", 0)
    assert OURS == selector(graph(metadata=grove), "decode", 2)


def test_an_absurd_number_of_replicas_gives_a_short_selector() -> None:
    on_grove = graph(service={"multinode": {"nodeCount": 2}}, metadata=GROVE)
    assert 64 * 1024 > len(selector(on_grove, "decode", 2**31 - 1))


GRAPHS = "nvidia.com/dynamo-graph-deployment-name=chat"
GROVE = {"annotations": {"nvidia.com/workload-provider": "grove"}}


def two_services(**fields: Any) -> Any:
    """A service on one node and one on two."""
    many = a_service(multinode={"nodeCount": 2})
    return a_graph({"decode": a_service(), "many": many}, **fields)


def test_an_autoscaler_of_a_graph_sees_one_pod_of_each_replica_of_all_its_services() -> None:
    both = f"{GRAPHS},nvidia.com/dynamo-component in (decode,many)"
    assert f"{both},role!=worker" == graph_selector(two_services(), {"decode": 3, "many": 2})
    first, second = (f"chat-0-many-{index}-many-wkr" for index in (0, 1))
    assert f"{both},grove.io/podclique notin ({first},{second})" == graph_selector(
        two_services(metadata=GROVE), {"decode": 3, "many": 2}
    )
    alone = f"{GRAPHS},nvidia.com/dynamo-component in (decode)"
    assert alone == graph_selector(two_services(), {"decode": 1})


def test_the_selector_of_a_graph_whose_factor_means_nothing_finds_no_pod() -> None:
    assert f"{GRAPHS},!nvidia.com/dynamo-graph-deployment-name" == graph_selector(graph(), {})


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
    why = hold(adapter(), SPEC, live)
    if why is None:
        status = acting_status(adapter(), SPEC, live, "2026-01-01T00:00:00Z")
    else:
        status = held_status(adapter(), SPEC, live, why)
    condition = msgspec.structs.replace(ready(status), last_transition_time="2026-01-01T00:00:00Z")
    stored = msgspec.json.decode(msgspec.json.encode(status.with_conditions([condition])))
    assert () == status_problems(DynamoGraphDeploymentScalingAdapter, stored)
