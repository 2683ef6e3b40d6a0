"""What a graph needs and does not create, and its status while that is missing."""

from typing import Any

import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import graph_stop, missing
from dynamo_operator.names import COMPONENT, GROVE, on_provider
from dynamo_operator.shared.cluster import GROVE as GROVE_API
from dynamo_operator.shared.cluster import INFERENCE_POOL, LEADER_WORKER_SET, Facts
from specs import a_graph, a_service

QUEUES = Facts(kai_served=True, kai_queues=frozenset(("dynamo",)))


def lacks(facts: Facts, services: Any = None, **spec: Any) -> list[str]:
    graph = a_graph(services or {"w": a_service()}, **spec)
    return [text for _, _, text in missing(graph, facts)]


def stopped(graph: DynamoGraphDeployment) -> Any:
    """The status of a graph that runs on components, in an empty cluster."""
    stop = graph_stop(on_provider(graph, COMPONENT), Facts(), ())
    assert stop is not None
    return stop.status


def test_a_graph_of_its_own_lacks_nothing() -> None:
    assert [] == lacks(Facts(), pvcs=[{"name": "made", "create": True}])


def test_a_pvc_that_is_not_created_must_exist() -> None:
    pvcs = [{"name": "mine"}]
    [message] = lacks(Facts(claims=frozenset(("other",))), pvcs=pvcs)
    assert "PersistentVolumeClaim mine not found" in message
    assert [] == lacks(Facts(claims=frozenset(("mine",))), pvcs=pvcs)


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


def test_a_claim_alone_is_waited_for_and_anything_else_is_a_failure() -> None:
    pvcs = [{"name": "mine"}]
    waiting = a_graph({"w": a_service()}, pvcs=pvcs)
    status = stopped(waiting)
    assert ("pending", "some_resources_are_not_ready") == (status.state, status.conditions[0].reason)
    failed = a_graph({"w": a_service(), "e": a_service("epp")}, pvcs=pvcs)
    status = stopped(failed)
    assert ("failed", "failed_to_reconcile_the_resources") == (status.state, status.conditions[0].reason)
    assert 0 == status.observed_generation, "that spec was not carried out"
    assert "mine" in status.conditions[0].message
