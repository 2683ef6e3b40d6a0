"""A graph on the wire: what is not set is not written."""

import msgspec

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentSpec, Restart


def test_a_graph_is_written_as_it_is_read() -> None:
    spec = {"services": {"A": {"replicas": 2}}, "restart": {"id": "1"}, "backendFramework": "vllm"}
    graph = msgspec.convert({"spec": spec}, DynamoGraphDeployment)
    assert 2 == graph.spec.services["A"].desired_replicas
    assert spec == msgspec.to_builtins(graph)["spec"]


def test_defaults_are_not_written() -> None:
    spec = DynamoGraphDeploymentSpec(services={"A": ComponentSpec()}, restart=Restart(id="1"))
    assert {"services": {"A": {}}, "restart": {"id": "1"}} == msgspec.to_builtins(spec)
