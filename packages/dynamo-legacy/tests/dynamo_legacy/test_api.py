"""The kinds of the older generation on the wire."""

import msgspec

from dynamo_legacy.api import RESOURCES, DynamoNimDeployment


def test_there_are_four_kinds_of_one_version() -> None:
    names = ["DynamoDeployment", "DynamoNim", "DynamoNimDeployment", "DynamoNimRequest"]
    assert names == sorted(type_.KIND.name for type_ in RESOURCES)
    assert {"nvidia.com/v1alpha1"} == {type_.KIND.api_version for type_ in RESOURCES}


def test_a_deployment_of_a_component_is_written_as_it_is_read() -> None:
    spec = {"dynamoNim": "frontend:1", "serviceName": "Frontend", "replicas": 2}
    nim = msgspec.convert({"spec": spec}, DynamoNimDeployment)
    assert spec == msgspec.to_builtins(nim)["spec"]
