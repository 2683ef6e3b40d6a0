"""What a graph's reconcile decides, from inputs that are values: no cluster, no cache."""

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.features.rollouts.plan import MANAGED
from dynamo_operator.features.scaling.api import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    ServiceReference,
)
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.plan import (
    GraphInputs,
    GraphPlan,
    has_begun,
    is_available,
    plan_graph,
    runs_on_withheld_grove,
    to_record,
    workload_provider,
)
from dynamo_operator.graph.replicas import ServiceObserved
from dynamo_operator.names import COMPONENT, GROVE
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import GROVE as GROVE_API
from dynamo_operator.shared.cluster import Facts, PodCliqueSet
from kube_runtime.types.meta import Condition, Metadata, OwnerReference, ScaledMetadata
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


def planned(found: DynamoGraphDeployment, **inputs: Any) -> GraphPlan:
    return plan_graph(found, GraphInputs(Facts(), **inputs), RenderSettings(), NOW)


def replicas(plan: GraphPlan) -> int | None:
    return plan.step.graph.spec.services["W"].replicas


def test_an_adapter_to_create_asks_for_what_the_service_has() -> None:
    plan = planned(graph(**SCALED), services=RUNNING)
    (desired,) = plan.adapters.desired
    assert ("chat-w", 5) == (desired["metadata"]["name"], desired["spec"]["replicas"])
    assert 5 == replicas(plan), "creating it changes nothing"


def test_an_adapter_that_exists_asks_for_its_own_number() -> None:
    plan = planned(graph(**SCALED), services=RUNNING, adapters={"chat-w": adapter(7)})
    assert 7 == replicas(plan)


@pytest.mark.parametrize(
    "inputs",
    [
        {"adapters_not_created": frozenset({"chat-w"})},
        {"adapters": {"chat-w": adapter(7, owner="another")}},
    ],
    ids=["refused", "of another"],
)
def test_without_an_adapter_the_number_of_the_service_counts(inputs: dict[str, Any]) -> None:
    assert 2 == replicas(planned(graph(**SCALED), services=RUNNING, **inputs))


def test_an_adapter_that_is_not_enabled_any_more_is_an_orphan() -> None:
    plan = planned(graph(), adapters={"chat-w": adapter(7)})
    assert ["chat-w"] == [each.metadata.name for each in plan.adapters.orphans]
    assert 2 == replicas(plan)


def test_a_new_graph_is_planned_with_the_rollouts_that_it_is_to_record() -> None:
    settings = RenderSettings(worker_rollout="managed")
    plan = plan_graph(graph(componentType="worker"), GraphInputs(Facts()), settings, NOW)
    assert {labels.WORKER_ROLLOUT: MANAGED} == dict(plan.record)
    assert plan.rollout.workers.suffix, "its first workers have the name of their revision"


def test_what_is_written_first_is_the_metadata_of_everything_after_it() -> None:
    plan = planned(graph())
    metadata = graph().metadata
    written = plan.as_written(metadata)
    assert metadata is written.graph.metadata is written.step.graph.metadata


WITH_GROVE, WITHOUT = Facts(grove_served=True), Facts()
DCD, SET = "DynamoComponentDeployment", "PodCliqueSet"


def graph_of_provider(**annotations: str) -> DynamoGraphDeployment:
    keys = {"recorded": labels.WORKLOAD_PROVIDER, "enable_grove": labels.ENABLE_GROVE}
    found = {keys[name]: value for name, value in annotations.items()}
    return DynamoGraphDeployment(Metadata("chat", annotations=found))


@pytest.mark.parametrize("facts", [WITH_GROVE, WITHOUT])
@pytest.mark.parametrize("present", [(), (DCD,), (SET,), (DCD, SET)])
@pytest.mark.parametrize("recorded", [COMPONENT, GROVE, "knative"])
def test_what_is_recorded_stays(facts: Facts, present: tuple[str, ...], recorded: str) -> None:
    assert recorded == workload_provider(
        graph_of_provider(recorded=recorded, enable_grove="false"), facts, present
    )


@pytest.mark.parametrize("facts", [WITH_GROVE, WITHOUT])
@pytest.mark.parametrize(
    ("present", "expected"), [((DCD, "Role"), COMPONENT), ((SET, "Service"), GROVE)]
)
def test_a_graph_without_a_record_keeps_what_it_has(
    facts: Facts, present: tuple[str, ...], expected: str
) -> None:
    assert expected == workload_provider(graph_of_provider(), facts, present)


@pytest.mark.parametrize("enable_grove", ["false", "False", "FALSE"])
def test_a_graph_may_refuse_grove(enable_grove: str) -> None:
    assert COMPONENT == workload_provider(
        graph_of_provider(enable_grove=enable_grove), WITH_GROVE, ()
    )


def test_without_grove_a_new_graph_has_components() -> None:
    assert COMPONENT == workload_provider(graph_of_provider(), WITHOUT, ("ServiceAccount",))


def test_with_grove_a_new_graph_is_groves() -> None:
    for annotations in ({}, {"enable_grove": "true"}, {"enable_grove": "0"}):
        assert GROVE == workload_provider(graph_of_provider(**annotations), WITH_GROVE, ())


def test_who_is_unknown_or_not_there_is_unavailable() -> None:
    assert is_available(COMPONENT, WITHOUT)
    assert not is_available(GROVE, WITHOUT)
    assert not is_available("knative", WITH_GROVE)


NATIVE, MANAGED_PROVIDER = RenderSettings(), RenderSettings(worker_rollout="managed")


@pytest.mark.parametrize("chosen", [COMPONENT, GROVE])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_choice_is_recorded_once_where_there_is_one(chosen: str, is_new: bool) -> None:
    record = to_record(graph_of_provider(), chosen, WITH_GROVE, NATIVE, is_new=is_new)
    assert {labels.WORKLOAD_PROVIDER: chosen} == record
    recorded = graph_of_provider(recorded=chosen)
    assert {} == to_record(recorded, chosen, WITH_GROVE, NATIVE, is_new=is_new)


def test_without_a_choice_nothing_is_recorded() -> None:
    assert {} == to_record(graph_of_provider(), COMPONENT, WITHOUT, NATIVE, is_new=True)


@pytest.mark.parametrize(("chosen", "facts"), [(COMPONENT, WITHOUT), (COMPONENT, WITH_GROVE)])
def test_only_new_graphs_of_components_begin_with_the_rollouts_of_the_setting(
    chosen: str, facts: Facts
) -> None:
    begun = to_record(graph_of_provider(), chosen, facts, MANAGED_PROVIDER, is_new=True)
    assert "managed" == begun[labels.WORKER_ROLLOUT]
    present = to_record(graph_of_provider(), chosen, facts, MANAGED_PROVIDER, is_new=False)
    assert labels.WORKER_ROLLOUT not in present
    on_grove = to_record(graph_of_provider(), GROVE, WITH_GROVE, MANAGED_PROVIDER, is_new=True)
    assert labels.WORKER_ROLLOUT not in on_grove


def reported(kind: Literal["Deployment", "LeaderWorkerSet", "PodClique"]) -> DynamoGraphDeployment:
    """A graph whose status names a workload of that kind."""
    service = ServiceReplicaStatus(
        component_kind=kind, component_name="it", replicas=1, updated_replicas=1
    )
    status = DynamoGraphDeploymentStatus(services={"Worker": service})
    return msgspec.structs.replace(graph_of_provider(), status=status)


def test_what_says_that_a_graph_has_begun() -> None:
    assert has_begun(graph_of_provider(), ("Role", DCD))
    assert has_begun(graph_of_provider(), (SET,))
    assert has_begun(graph_of_provider(recorded=COMPONENT), ())
    assert has_begun(reported("Deployment"), ())
    assert not has_begun(graph_of_provider(), ("Role", "ServiceAccount"))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("Deployment", COMPONENT), ("LeaderWorkerSet", COMPONENT), ("PodClique", GROVE)],
)
@pytest.mark.parametrize("facts", [WITH_GROVE, WITHOUT])
def test_who_deletes_all_components_of_a_graph_does_not_move_it(
    kind: Literal["Deployment", "LeaderWorkerSet", "PodClique"], expected: str, facts: Facts
) -> None:
    assert expected == workload_provider(reported(kind), facts, ("Role",))


WITHHELD = Facts(withheld={GROVE_API: (PodCliqueSet.KIND,)})
OF_GO = DynamoGraphDeploymentStatus(
    state="successful", conditions=(Condition("Ready", "True", reason="all_resources_are_ready"),)
)
OF_OURS = DynamoGraphDeploymentStatus(
    state="failed",
    conditions=(Condition("Ready", "False", reason="ValidationFailed", observed_generation=1),),
)


def withheld(
    found: DynamoGraphDeployment,
    *present: str,
    facts: Facts = WITHHELD,
    status: DynamoGraphDeploymentStatus | None = None,
    finalizer: bool = False,
) -> bool:
    found = msgspec.structs.replace(found, status=status or found.status)
    return runs_on_withheld_grove(found, facts, present, has_foreign_finalizer=finalizer)


def test_a_graph_of_another_operator_may_be_on_a_grove_that_we_may_not_read() -> None:
    assert withheld(graph_of_provider(), status=OF_GO)
    assert withheld(graph_of_provider(), finalizer=True)
    services = {"W": ServiceReplicaStatus("PodClique", "g-0-w", replicas=1, updated_replicas=1)}
    assert withheld(graph_of_provider(), status=DynamoGraphDeploymentStatus(services=services))


@pytest.mark.parametrize("status", [None, OF_OURS])
def test_a_graph_that_no_other_operator_has_seen_is_not(
    status: DynamoGraphDeploymentStatus | None,
) -> None:
    assert not withheld(graph_of_provider(), status=status)


def test_nor_is_one_with_components_or_one_that_refuses_grove_or_is_decided() -> None:
    assert not withheld(graph_of_provider(), DCD, status=OF_GO, finalizer=True)
    assert not withheld(graph_of_provider(enable_grove="false"), status=OF_GO, finalizer=True)
    assert not withheld(graph_of_provider(recorded=COMPONENT), status=OF_GO, finalizer=True)


@pytest.mark.parametrize("facts", [WITH_GROVE, WITHOUT])
def test_where_grove_is_read_or_not_installed_nothing_is_guessed(facts: Facts) -> None:
    assert not withheld(graph_of_provider(), facts=facts, status=OF_GO, finalizer=True)
