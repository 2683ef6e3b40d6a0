"""A scaling adapter on the wire: the service that it scales, and the replicas that autoscalers set."""

import msgspec

from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter


def test_an_adapter_names_graph_and_service() -> None:
    spec = {"replicas": 3, "dgdRef": {"name": "chat", "serviceName": "Decode"}}
    adapter = msgspec.convert({"spec": spec}, DynamoGraphDeploymentScalingAdapter)
    assert adapter.spec is not None
    assert ("chat", "Decode") == (adapter.spec.dgd_ref.name, adapter.spec.dgd_ref.service_name)
    assert spec == msgspec.to_builtins(adapter)["spec"]
