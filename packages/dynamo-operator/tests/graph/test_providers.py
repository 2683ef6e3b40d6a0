"""Which provider runs a graph, and what of that is recorded."""

from typing import Literal

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus
from dynamo_operator.graph.decide import is_available, to_record, workload_provider
from dynamo_operator.names import COMPONENT, GROVE
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import GROVE as GROVE_API
from dynamo_operator.shared.cluster import Facts, PodCliqueSet
from kube_runtime.types.meta import Condition, Metadata

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
def test_a_new_graph_is_groves_unless_it_refuses(enable_grove: str, facts: Facts, expected: str) -> None:
    annotations = {"enable_grove": enable_grove} if enable_grove else {}
    assert expected == workload_provider(graph_of_provider(**annotations), facts, ("ServiceAccount",))


def test_who_is_unknown_or_not_there_is_unavailable() -> None:
    assert is_available(COMPONENT, WITHOUT)
    assert not is_available(GROVE, WITHOUT)
    assert not is_available("knative", WITH_GROVE)


NATIVE, MANAGED_PROVIDER = RenderSettings(), RenderSettings(worker_rollout="managed")


@pytest.mark.parametrize("chosen", [COMPONENT, GROVE])
@pytest.mark.parametrize("present", [(), (DCD,)])
def test_a_choice_is_recorded_once_where_there_is_one(chosen: str, present: tuple[str, ...]) -> None:
    record = to_record(graph_of_provider(), chosen, WITH_GROVE, NATIVE, present)
    assert {labels.WORKLOAD_PROVIDER: chosen} == record
    recorded = graph_of_provider(recorded=chosen)
    assert {} == to_record(recorded, chosen, WITH_GROVE, NATIVE, present)


def test_without_a_choice_nothing_is_recorded() -> None:
    assert {} == to_record(graph_of_provider(), COMPONENT, WITHOUT, NATIVE, ())


def test_a_graph_on_grove_gets_no_managed_rollouts() -> None:
    on_grove = to_record(graph_of_provider(), GROVE, WITH_GROVE, MANAGED_PROVIDER, ())
    assert labels.WORKER_ROLLOUT not in on_grove


def reported(kind: Literal["Deployment", "LeaderWorkerSet", "PodClique"]) -> DynamoGraphDeployment:
    """A graph whose status names a workload of that kind."""
    service = ServiceReplicaStatus(component_kind=kind, component_name="it", replicas=1, updated_replicas=1)
    status = DynamoGraphDeploymentStatus(services={"Worker": service})
    return msgspec.structs.replace(graph_of_provider(), status=status)


def rollouts(graph: DynamoGraphDeployment, *present: str) -> bool:
    record = to_record(graph, COMPONENT, WITHOUT, MANAGED_PROVIDER, present)
    return labels.WORKER_ROLLOUT in record


def test_only_a_graph_that_has_not_begun_gets_the_rollouts_of_the_setting() -> None:
    assert not rollouts(graph_of_provider(), "Role", DCD)
    assert not rollouts(graph_of_provider(), SET)
    assert not rollouts(graph_of_provider(recorded=COMPONENT))
    assert not rollouts(reported("Deployment"))
    assert rollouts(graph_of_provider(), "Role", "ServiceAccount")


@pytest.mark.parametrize(
    ("kind", "expected"), [("Deployment", COMPONENT), ("LeaderWorkerSet", COMPONENT), ("PodClique", GROVE)]
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
    metadata = msgspec.structs.replace(found.metadata, finalizers=[labels.FINALIZER] if finalizer else [])
    found = msgspec.structs.replace(found, metadata=metadata, status=status or found.status)
    return workload_provider(found, facts, present) == GROVE


def test_a_graph_of_another_operator_may_be_on_a_grove_that_we_may_not_read() -> None:
    assert withheld(graph_of_provider(), status=OF_GO)
    assert withheld(graph_of_provider(), finalizer=True)
    services = {"W": ServiceReplicaStatus("PodClique", "g-0-w", replicas=1, updated_replicas=1)}
    assert withheld(graph_of_provider(), status=DynamoGraphDeploymentStatus(services=services))


@pytest.mark.parametrize("status", [None, OF_OURS])
def test_a_graph_that_no_other_operator_has_seen_is_not(status: DynamoGraphDeploymentStatus | None) -> None:
    assert not withheld(graph_of_provider(), status=status)


def test_nor_is_one_with_components_or_one_that_refuses_grove_or_is_decided() -> None:
    assert not withheld(graph_of_provider(), DCD, status=OF_GO, finalizer=True)
    assert not withheld(graph_of_provider(enable_grove="false"), status=OF_GO, finalizer=True)
    assert not withheld(graph_of_provider(recorded=COMPONENT), status=OF_GO, finalizer=True)


def test_where_grove_is_not_installed_nothing_is_guessed() -> None:
    assert not withheld(graph_of_provider(), facts=WITHOUT, status=OF_GO, finalizer=True)
