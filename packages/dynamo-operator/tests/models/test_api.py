"""A model on the wire: the names of its fields are those of the published API."""

import msgspec

from dynamo_operator.models.api import DynamoModel


def test_a_model_is_written_as_it_is_read() -> None:
    spec = {
        "modelName": "support",
        "baseModelName": "orion/base-13b",
        "modelType": "lora",
        "source": {"uri": "s3://bucket/support"},
    }
    assert spec == msgspec.to_builtins(msgspec.convert({"spec": spec}, DynamoModel))["spec"]
