"""A graph on Grove says what Grove made of it, in a form that our own schema takes."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dynamo_graphs.schema import status_problems
from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.component.diagnosis import Diagnosis
from dynamo_operator.features.grove.status import GroveMember, grove_view
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    DynamoGraphDeploymentStatus,
)
from dynamo_operator.graph.status import graph_status
from dynamo_operator.shared.cluster import (
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueSet,
    PodCliqueSetStatus,
    PodCliqueStatus,
    ReplicasSpec,
)
from dynamo_operator.shared.conditions import GraphReason
from kube_runtime.apply.status import with_transition_times
from kube_runtime.types.meta import Metadata

SERVICES = {"S0": ComponentSpec(), "S1": ComponentSpec()}
GRAPH = DynamoGraphDeployment(
    Metadata("chat", "prod", generation=2), DynamoGraphDeploymentSpec(services=SERVICES)
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SET = PodCliqueSet(Metadata("chat", generation=3), status=PodCliqueSetStatus(3))


def clique(size: int = 2, generation: int = 4, **status: Any) -> GroveMember:
    """A service whose clique is fine but for these counts."""
    counts = {"observed_generation": 4, "replicas": size, "updated_replicas": size}
    reported = PodCliqueStatus(**{**counts, "ready_replicas": size, **status})
    live = PodClique(Metadata("chat-0-w", generation=generation), ReplicasSpec(size), reported)
    return GroveMember("chat-0-w", is_group=False, live=live, desired=size)


def group(**status: Any) -> GroveMember:
    """A service over several nodes whose scaling group is fine but for these counts."""
    counts = {"observed_generation": 1, "replicas": 1, "updated_replicas": 1}
    reported = PodCliqueScalingGroupStatus(**{**counts, "available_replicas": 1, **status})
    live = PodCliqueScalingGroup(Metadata("chat-0-m", generation=1), ReplicasSpec(1), reported)
    return GroveMember("chat-0-m", is_group=True, live=live, desired=None)


def of(*members: GroveMember, clique_set: PodCliqueSet | None = SET) -> DynamoGraphDeploymentStatus:
    views = {f"S{n}": grove_view(GRAPH, f"S{n}", clique_set, member) for n, member in enumerate(members)}
    return graph_status(GRAPH, views, (), now=NOW).status


def message(status: DynamoGraphDeploymentStatus) -> str:
    message: str = status.conditions[0].message
    return message


def test_all_ready_is_successful() -> None:
    status = of(clique(), group())
    assert ("successful", "All resources are ready") == (status.state, message(status))


@pytest.mark.parametrize(
    ("member", "cause"),
    [
        (GroveMember("chat-0-w", is_group=False, live=None, desired=1), "resource not found"),
        (clique(observed_generation=None), "observedGeneration is nil"),
        (clique(generation=5), "spec not yet processed: generation=5, observedGeneration=4"),
        (replace(clique(), desired=5), "scaling: desired=5, replicas=2"),
        (clique(ready_replicas=1), "desired=2, ready=1"),
        (group(updated_replicas=0), "desired=1, updated=0"),
    ],
)
def test_a_clique_that_is_not_ready_reports_the_cause(member: GroveMember, cause: str) -> None:
    status = of(member)
    name = f"{'pcsg' if member.is_group else 'podclique'}/{member.name}"
    assert f"Resources not ready: chat: {name}: {cause}" == message(status)
    assert "pending" == status.state


def test_a_set_that_no_controller_has_observed_asks_for_one() -> None:
    member = GroveMember("chat-0-w", is_group=False, live=None, desired=1)
    unseen = PodCliqueSet(Metadata("chat", creation_timestamp="2026-01-01T00:00:00Z"))
    text = message(of(member, clique_set=unseen))
    assert "no controller has observed PodCliqueSet chat since it was created at 2026" in text
    assert "check that the controller of Grove runs" in text


@pytest.mark.parametrize(
    ("member", "ready", "cause"),
    [
        (clique(updated_replicas=0), 0, "desired=2, updated=0"),
        (clique(replicas=3), 1, "performing rolling update: desired=2, replicas=3"),
    ],
)
def test_a_clique_with_older_pods_is_being_updated(member: GroveMember, ready: int, cause: str) -> None:
    status = of(member)
    assert "updating" == status.conditions[0].reason
    assert f"S0: {ready}/2 ready; chat: podclique/chat-0-w: {cause}" == message(status)


def test_the_pods_of_a_clique_say_why_it_is_not_ready() -> None:
    diagnosis = Diagnosis(GraphReason.PODS_CRASHING, "pod x-0 OOMKilled", scheduled_replicas=2)
    view = grove_view(GRAPH, "S0", SET, clique(ready_replicas=1), diagnosis)
    status = graph_status(GRAPH, {"S0": view}, (), now=NOW).status
    assert "pods_crashing" == status.conditions[0].reason
    assert "S0: 1/2 ready; pod x-0 OOMKilled" == message(status)
    service = status.services["S0"]
    expected = (2, "prod-chat", ["chat-0-w"])
    assert expected == (service.scheduled_replicas, service.runtime_namespace, list(service.component_names))


def test_the_first_cause_of_a_group_is_reported_and_causes_are_sorted() -> None:
    status = of(group(available_replicas=0, updated_replicas=0), clique(ready_replicas=0))
    assert (
        "Resources not ready: chat: pcsg/chat-0-m: desired=1, available=0; "
        "podclique/chat-0-w: desired=2, ready=0"
    ) == message(status)


def test_nothing_wanted_is_ready() -> None:
    assert "successful" == of(clique(0, replicas=1, ready_replicas=0)).state


def test_cliques_are_not_believed_before_grove_has_read_the_newest_set() -> None:
    behind = PodCliqueSet(Metadata("chat", generation=3), status=PodCliqueSetStatus(2))
    status = of(clique(), clique_set=behind)
    assert "podcliqueset/chat: spec not yet processed: generation=3" in message(status)


@pytest.mark.parametrize(
    "status",
    [
        of(clique(), group()),
        of(GroveMember("chat-0-m", is_group=True, live=None, desired=None), clique_set=None),
    ],
)
def test_our_schema_takes_our_status(status: DynamoGraphDeploymentStatus) -> None:
    conditions = with_transition_times(status.conditions, (), now="2026-01-01T00:00:00Z")
    stored = msgspec.json.decode(msgspec.json.encode(status.with_conditions(conditions)))
    assert () == status_problems(DynamoGraphDeployment, stored)
