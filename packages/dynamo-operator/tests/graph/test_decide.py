"""What a graph's reconcile decides, from inputs that are values: no cluster, no cache."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.features.history import HISTORY
from dynamo_operator.features.rollouts.revisions import MANAGED
from dynamo_operator.features.scaling.api import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    ServiceReference,
)
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.decide import decide, plan_graph, workload_provider
from dynamo_operator.graph.decision import AdapterInputs, Decision, GraphInputs
from dynamo_operator.graph.service import ServiceObserved
from dynamo_operator.names import GROVE
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import GROVE as GROVE_API
from dynamo_operator.shared.cluster import Facts, PodCliqueSet
from kube_runtime.types.meta import OwnerReference, ScaledMetadata
from specs import a_graph, a_service

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCALED: dict[str, Any] = {"scalingAdapter": {"enabled": True}}
RUNNING = {"W": ServiceObserved(exists=True, desired=5, replicas=5, ready=5)}


def graph(**service: Any) -> DynamoGraphDeployment:
    return a_graph({"W": a_service(replicas=2, **service)}, metadata={"uid": "uid"})


def adapter(replicas: int, *, owner: str = "uid") -> DynamoGraphDeploymentScalingAdapter:
    reference = OwnerReference("DynamoGraphDeployment", "chat", uid=owner, controller=True)
    return DynamoGraphDeploymentScalingAdapter(
        ScaledMetadata("chat-w", "prod", "adapter", owner_references=(reference,)),
        DynamoGraphDeploymentScalingAdapterSpec(replicas, ServiceReference("chat", "W")),
    )


def planned(found: DynamoGraphDeployment, **inputs: Any) -> Decision:
    return plan_graph(found, GraphInputs(Facts(), **inputs), RenderSettings(), NOW)


def replicas(plan: Decision) -> int | None:
    return plan.effective.spec.services["W"].replicas


def test_an_adapter_to_create_asks_for_what_the_service_has() -> None:
    plan = planned(graph(**SCALED), services=RUNNING)
    (desired,) = plan.adapters.desired
    assert ("chat-w", 5) == (desired["metadata"]["name"], desired["spec"]["replicas"])
    assert 5 == replicas(plan), "creating it changes nothing"


def test_an_adapter_that_exists_asks_for_its_own_number() -> None:
    plan = planned(graph(**SCALED), services=RUNNING, adapters=AdapterInputs({"chat-w": adapter(7)}))
    assert 7 == replicas(plan)


@pytest.mark.parametrize(
    "inputs",
    [
        {"adapters": AdapterInputs(refused=frozenset({"chat-w"}))},
        {"adapters": AdapterInputs({"chat-w": adapter(7, owner="another")})},
    ],
    ids=["refused", "of another"],
)
def test_without_an_adapter_the_number_of_the_service_counts(inputs: dict[str, Any]) -> None:
    assert 2 == replicas(planned(graph(**SCALED), services=RUNNING, **inputs))


def test_an_adapter_that_is_not_enabled_any_more_is_an_orphan() -> None:
    plan = planned(graph(), adapters=AdapterInputs({"chat-w": adapter(7)}))
    assert ["chat-w"] == [each.metadata.name for each in plan.adapters.orphans]
    assert 2 == replicas(plan)


def test_a_new_graph_is_planned_with_the_rollouts_that_it_is_to_record() -> None:
    settings = RenderSettings(worker_rollout="managed")
    plan = plan_graph(graph(componentType="worker"), GraphInputs(Facts()), settings, NOW)
    assert {labels.WORKER_ROLLOUT: MANAGED} == dict(plan.record)
    assert plan.rollout is not None
    assert plan.rollout.workers.suffix, "its first workers have the name of their revision"


def test_what_is_written_first_is_the_metadata_of_everything_after_it() -> None:
    plan = planned(graph())
    metadata = graph().metadata
    written = plan.as_written(metadata)
    assert metadata is written.graph.metadata is written.effective.metadata


def test_a_suspended_graph_keeps_the_replicas_of_its_spec() -> None:
    suspended = a_graph(
        {"W": a_service(replicas=4), "Router": a_service()},
        metadata={"uid": "uid", "annotations": {labels.SUSPEND: "true"}},
    )
    plan = planned(suspended)
    assert {0} == {each.replicas for each in plan.effective.spec.services.values()}
    assert 4 == plan.graph.spec.services["W"].replicas


def test_a_graph_that_uses_no_feature_meets_none_but_its_history() -> None:
    assert (HISTORY,) == planned(graph()).features


WITHHELD = Facts(withheld={GROVE_API: (PodCliqueSet.KIND,)})


def test_a_graph_on_a_grove_that_may_not_be_read_is_recorded_before_it_is_refused() -> None:
    found = msgspec.structs.replace(graph(), status=DynamoGraphDeploymentStatus(state="successful"))
    inputs = GraphInputs(WITHHELD, provider=workload_provider(found, WITHHELD))
    decision = decide(found, inputs, RenderSettings(), NOW, lambda _: ())
    assert {labels.WORKLOAD_PROVIDER: GROVE} == decision.record
    assert decision.stop is not None
    assert "WorkloadProviderUnavailable" == decision.stop.reason
    assert () == decision.objects
