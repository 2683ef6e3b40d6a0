"""What a graph's reconcile decides, from values: its plan, its provider, and what stops it."""

from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.component.service import ServiceObserved
from dynamo_operator.features.decision import AdapterInputs, Decision, GraphInputs
from dynamo_operator.features.history import HISTORY
from dynamo_operator.features.rollouts.revisions import MANAGED, digits, worker_content
from dynamo_operator.features.scaling.api import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    ServiceReference,
)
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus, Restart
from dynamo_operator.graph.decide import (
    DISCOVERY,
    decide,
    decide_valid,
    graph_stop,
    is_available,
    missing,
    to_record,
    workload_provider,
)
from dynamo_operator.names import COMPONENT, GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import GROVE as GROVE_API
from dynamo_operator.shared.cluster import INFERENCE_POOL, LEADER_WORKER_SET, Facts, PodCliqueSet
from kube_runtime.types.meta import Condition, Metadata, OwnerReference, ScaledMetadata
from specs import a_component, a_graph, a_service

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
    return decide_valid(found, GraphInputs(Facts(), **inputs), RenderSettings(), NOW)


def replicas(plan: Decision) -> int | None:
    return plan.effective.spec.services["W"].replicas


def test_an_adapter_to_create_asks_for_what_the_service_has() -> None:
    plan = planned(graph(**SCALED), services=RUNNING)
    (desired,) = plan.adapters.desired
    assert ("chat-w", 5) == (desired["metadata"]["name"], desired["spec"]["replicas"])
    assert 5 == replicas(plan), "creating it changes nothing"


@pytest.mark.parametrize(
    ("services", "restarted"),
    [({}, {"A", "B"}), ({"A": ServiceObserved(), "B": ServiceObserved()}, {"A"})],
    ids=["new", "on Grove, before its first clique"],
)
def test_a_restart_goes_service_by_service_once_there_are_workloads(
    services: dict[str, ServiceObserved], restarted: set[str]
) -> None:
    of_spec = {"A": a_service(), "B": a_service()}
    found = a_graph(of_spec, metadata={"uid": "uid"}, restart=Restart("r1"))
    found = msgspec.structs.replace(found, status=DynamoGraphDeploymentStatus(observed_generation=1))
    assert restarted == planned(found, services=services).restart.ids.keys()


@pytest.mark.parametrize(("was_scaled", "expected"), [({}, 6), (SCALED, 2)])
def test_in_a_rollout_the_factor_counts_unless_the_newest_workers_have_an_adapter(
    was_scaled: dict[str, Any], expected: int
) -> None:
    metadata = {"uid": "uid", "annotations": {labels.WORKER_ROLLOUT: MANAGED}}
    found = a_graph({"W": a_service(replicas=2, **SCALED)}, metadata=metadata, replicas=3)
    components = []
    for hash_, scaled in (("1:0", {} if was_scaled else SCALED), (worker_content(found), was_scaled)):
        suffix = digits(hash_)
        marks = {"labels": {labels.WORKER_HASH: suffix}, "annotations": {labels.WORKER_CONTENT: hash_}}
        components.append(a_component(suffix, metadata=marks, serviceName="W", **scaled))
    rolling = {"W": ServiceObserved(exists=True, desired=7, has_older=True)}
    assert expected == replicas(planned(found, services=rolling, components=tuple(components)))


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


def test_a_new_graph_is_planned_with_the_rollouts_that_it_is_to_record() -> None:
    settings = RenderSettings(worker_rollout="managed")
    plan = decide_valid(graph(componentType="worker"), GraphInputs(Facts()), settings, NOW)
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


def test_a_plain_graph_uses_history_and_discovery_only() -> None:
    assert (HISTORY, DISCOVERY) == planned(graph()).features


WITHHELD = Facts(withheld={GROVE_API: (PodCliqueSet.KIND,)})


def test_a_graph_on_a_grove_that_may_not_be_read_is_recorded_before_it_is_refused() -> None:
    found = msgspec.structs.replace(graph(), status=DynamoGraphDeploymentStatus(state="successful"))
    inputs = GraphInputs(WITHHELD, provider=workload_provider(found, WITHHELD))
    decision = decide(found, inputs, RenderSettings(), NOW, lambda _: ())
    assert {labels.WORKLOAD_PROVIDER: GROVE} == decision.record
    assert decision.stop is not None
    assert "WorkloadProviderUnavailable" == decision.stop.reason
    assert () == decision.objects


QUEUES = Facts(kai_served=True, kai_queues=frozenset(("dynamo",)))


def lacks(facts: Facts, services: Any = None, **spec: Any) -> list[str]:
    graph = a_graph(services or {"w": a_service()}, **spec)
    return [text for _, _, text in missing(graph, facts)]


def stopped(graph: DynamoGraphDeployment) -> Any:
    """The status of a graph that runs on components, in an empty cluster."""
    stop = graph_stop(on_provider(graph, COMPONENT), Facts(), ())
    assert stop is not None
    return stop.status


def test_a_pvc_that_is_not_created_must_exist() -> None:
    pvcs = [{"name": "mine"}]
    [message] = lacks(Facts(claims=frozenset(("other",))), pvcs=pvcs)
    assert "PersistentVolumeClaim mine not found" in message
    assert [] == lacks(Facts(claims=frozenset(("mine",))), pvcs=pvcs)
    assert [] == lacks(Facts(), pvcs=[{"name": "made", "create": True}])


def test_an_endpoint_picker_needs_the_api_of_pools() -> None:
    services = {"e": a_service("epp")}
    [message] = lacks(Facts(), services)
    assert "inference.networking.k8s.io" in message
    assert [] == lacks(Facts(inference_pools_served=True), services)


def test_several_nodes_need_something_that_runs_them_unless_it_is_grove() -> None:
    graph = a_graph({"w": a_service(multinode={"nodeCount": 2})})
    [(_, reason, message)] = missing(graph, Facts())
    assert (
        "failed to reconcile Dynamo components deployments: no multinode orchestrator available"
    ) == message
    assert "no_multinode_orchestrator" == reason
    assert () == tuple(missing(graph, Facts(lws_served=True)))
    assert () == tuple(missing(on_provider(graph, GROVE), Facts()))


def test_what_is_installed_and_may_not_be_read_is_not_reported_as_missing() -> None:
    graph = a_graph({"w": a_service(multinode={"nodeCount": 2}), "e": a_service("epp")})
    apis = (LEADER_WORKER_SET, GROVE_API, INFERENCE_POOL)
    lacks = missing(graph, Facts(withheld={api: api.kinds for api in apis}))
    (_, first, nodes), (_, second, picker) = lacks
    assert {"optional_api_forbidden"} == {first, second}
    assert "LeaderWorkerSet with Volcano is installed, but the operator may not read" in nodes
    assert "no multinode orchestrator" not in nodes
    for message, api in ((nodes, LEADER_WORKER_SET), (nodes, GROVE_API), (picker, INFERENCE_POOL)):
        assert f"the chart value dynamo-operator.optionalApis.{api.key}=true" in message


NO_QUEUE = "queue 'other' not found in cluster. Ensure the queue exists before using kai-scheduler"


@pytest.mark.parametrize(
    ("queue", "expected"), [(" ", []), ("dynamo", []), (" dynamo ", []), ("other", [NO_QUEUE])]
)
def test_the_queue_of_a_graph_on_grove_must_be_there(queue: str, expected: list[str]) -> None:
    metadata = {"annotations": {"nvidia.com/kai-scheduler-queue": queue}}
    graph = a_graph({"w": a_service()}, metadata=metadata)
    assert () == tuple(missing(graph, QUEUES))
    assert expected == [text for _, _, text in missing(on_provider(graph, GROVE), QUEUES)]
    assert () == tuple(missing(on_provider(graph, GROVE), Facts()))


def test_a_missing_pvc_is_pending_and_any_other_stop_is_a_failure() -> None:
    pvcs = [{"name": "mine"}]
    waiting = a_graph({"w": a_service()}, pvcs=pvcs)
    status = stopped(waiting)
    assert ("pending", "some_resources_are_not_ready") == (status.state, status.conditions[0].reason)
    failed = a_graph({"w": a_service(), "e": a_service("epp")}, pvcs=pvcs)
    status = stopped(failed)
    assert ("failed", "failed_to_reconcile_the_resources") == (status.state, status.conditions[0].reason)
    assert 0 == status.observed_generation, "that spec was not carried out"
    assert "mine" in status.conditions[0].message


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
@pytest.mark.parametrize(("present", "expected"), [((DCD, "Role"), COMPONENT), ((SET, "Service"), GROVE)])
def test_a_graph_without_a_record_keeps_what_it_has(
    facts: Facts, present: tuple[str, ...], expected: str
) -> None:
    assert expected == workload_provider(graph_of_provider(), facts, present)


@pytest.mark.parametrize(
    ("enable_grove", "facts", "expected"),
    [
        *((text, WITH_GROVE, COMPONENT) for text in ("false", "False", "FALSE")),
        *((text, WITH_GROVE, GROVE) for text in ("", "true", "0")),
        ("", WITHOUT, COMPONENT),
    ],
)
def test_a_new_graph_uses_grove_unless_disabled(enable_grove: str, facts: Facts, expected: str) -> None:
    annotations = {"enable_grove": enable_grove} if enable_grove else {}
    assert expected == workload_provider(graph_of_provider(**annotations), facts, ("ServiceAccount",))


def test_an_unknown_or_missing_workload_provider_is_unavailable() -> None:
    assert is_available(COMPONENT, WITHOUT)
    assert not is_available(GROVE, WITHOUT)
    assert not is_available("knative", WITH_GROVE)


NATIVE, MANAGED_PROVIDER = RenderSettings(), RenderSettings(worker_rollout="managed")


@pytest.mark.parametrize("chosen", [COMPONENT, GROVE])
@pytest.mark.parametrize("present", [(), (DCD,)])
def test_the_workload_provider_is_recorded_once(chosen: str, present: tuple[str, ...]) -> None:
    record = to_record(graph_of_provider(), chosen, WITH_GROVE, NATIVE, present)
    assert {labels.WORKLOAD_PROVIDER: chosen} == record
    recorded = graph_of_provider(recorded=chosen)
    assert {} == to_record(recorded, chosen, WITH_GROVE, NATIVE, present)
    assert {} == to_record(graph_of_provider(), COMPONENT, WITHOUT, NATIVE, present)


def reported(kind: Literal["Deployment", "LeaderWorkerSet", "PodClique"]) -> DynamoGraphDeployment:
    """A graph whose status names a workload of that kind."""
    service = ServiceReplicaStatus(component_kind=kind, component_name="it", replicas=1, updated_replicas=1)
    status = DynamoGraphDeploymentStatus(services={"Worker": service})
    return msgspec.structs.replace(graph_of_provider(), status=status)


def rollouts(graph: DynamoGraphDeployment, *present: str, chosen: str = COMPONENT) -> bool:
    record = to_record(graph, chosen, WITH_GROVE, MANAGED_PROVIDER, present)
    return labels.WORKER_ROLLOUT in record


def test_only_a_graph_that_has_not_begun_gets_the_rollouts_of_the_setting() -> None:
    assert not rollouts(graph_of_provider(), "Role", DCD)
    assert not rollouts(graph_of_provider(), SET)
    assert not rollouts(graph_of_provider(recorded=COMPONENT))
    assert not rollouts(reported("Deployment"))
    assert rollouts(graph_of_provider(), "Role", "ServiceAccount")
    assert not rollouts(graph_of_provider(), chosen=GROVE)


@pytest.mark.parametrize(
    ("kind", "expected"), [("Deployment", COMPONENT), ("LeaderWorkerSet", COMPONENT), ("PodClique", GROVE)]
)
@pytest.mark.parametrize("facts", [WITH_GROVE, WITHOUT])
def test_deleting_all_components_of_a_graph_keeps_its_workload_provider(
    kind: Literal["Deployment", "LeaderWorkerSet", "PodClique"], expected: str, facts: Facts
) -> None:
    assert expected == workload_provider(reported(kind), facts, ("Role",))


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
    metadata = msgspec.structs.replace(found.metadata, finalizers=[labels.FINALIZER] if finalizer else [])
    found = msgspec.structs.replace(found, metadata=metadata, status=status or found.status)
    return workload_provider(found, facts, present) == GROVE


def test_a_graph_of_another_operator_may_be_on_a_grove_that_we_may_not_read() -> None:
    assert withheld(graph_of_provider(), status=OF_GO)
    assert withheld(graph_of_provider(), finalizer=True)
    services = {"W": ServiceReplicaStatus("PodClique", "g-0-w", replicas=1, updated_replicas=1)}
    assert withheld(graph_of_provider(), status=DynamoGraphDeploymentStatus(services=services))


def test_one_that_no_other_has_seen_or_with_components_or_without_grove_or_decided_is_not() -> None:
    assert not withheld(graph_of_provider())
    assert not withheld(graph_of_provider(), status=OF_OURS)
    assert not withheld(graph_of_provider(), DCD, status=OF_GO, finalizer=True)
    assert not withheld(graph_of_provider(enable_grove="false"), status=OF_GO, finalizer=True)
    assert not withheld(graph_of_provider(recorded=COMPONENT), status=OF_GO, finalizer=True)
    assert not withheld(graph_of_provider(), facts=WITHOUT, status=OF_GO, finalizer=True)
