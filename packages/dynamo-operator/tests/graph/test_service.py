"""A service of a graph becomes a component that the graph owns, and an autoscaler finds its pods."""

from typing import Any

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.service import default_ingress, graph_selector, owned_by, selector
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Metadata
from specs import a_graph, a_service

GRAPH = DynamoGraphDeployment(Metadata("chat", "lab", "uid-of-chat"))


def test_a_graph_controls_what_is_made_of_it() -> None:
    owner = owned_by(GRAPH, ConfigMap(Metadata("a", "lab"))).metadata.controller
    assert owner is not None
    assert ("chat", "uid-of-chat") == (owner.name, owner.uid)


def test_without_a_class_or_a_gateway_a_host_alone_switches_nothing_on() -> None:
    assert {"host": "chat"} == default_ingress("chat", RenderSettings())


GRAPHS = "nvidia.com/dynamo-graph-deployment-name=chat"
OURS = f"{GRAPHS},nvidia.com/dynamo-component=decode"
GROVE = {"annotations": {"nvidia.com/workload-provider": "grove"}}


def of(metadata: Any = None, **service: Any) -> DynamoGraphDeployment:
    """A graph of one service."""
    return a_graph({"decode": a_service(**service)}, metadata=metadata or {})


def test_an_autoscaler_sees_one_pod_of_each_replica() -> None:
    many = {"multinode": {"nodeCount": 2}}
    assert OURS == selector(of(), "decode", 2)
    assert f"{OURS},role=leader" == selector(of(**many), "decode", 2)
    on_grove = of(GROVE, **many)
    first, second = (f"chat-0-decode-{index}-decode-ldr" for index in (0, 1))
    assert f"{OURS},grove.io/podclique in ({first},{second})" == selector(on_grove, "decode", 2)
    assert f"{OURS},grove.io/podclique in ({first})" == selector(on_grove, "decode", 0)
    assert OURS == selector(of(GROVE), "decode", 2)


def test_an_absurd_number_of_replicas_gives_a_short_selector() -> None:
    on_grove = of(GROVE, multinode={"nodeCount": 2})
    assert 64 * 1024 > len(selector(on_grove, "decode", 2**31 - 1))


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
    assert f"{GRAPHS},!nvidia.com/dynamo-graph-deployment-name" == graph_selector(of(), {})
