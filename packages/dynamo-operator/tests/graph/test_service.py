"""A service of a graph becomes a component that the graph owns, with the graph's variables first."""

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.service import default_ingress, owned_by
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Metadata

GRAPH = DynamoGraphDeployment(Metadata("chat", "lab", "uid-of-chat"))


def test_a_graph_controls_what_is_made_of_it() -> None:
    owner = owned_by(GRAPH, ConfigMap(Metadata("a", "lab"))).metadata.controller
    assert owner is not None
    assert ("chat", "uid-of-chat") == (owner.name, owner.uid)


def test_without_a_class_or_a_gateway_a_host_alone_switches_nothing_on() -> None:
    assert {"host": "chat"} == default_ingress("chat", RenderSettings())
