"""What looks like a credential is taken out of texts, and nothing that an address needs."""

import pytest

from dynamo_operator.models.api import DynamoModel, DynamoModelSpec, ModelSource
from dynamo_operator.models.validate import model_warnings
from dynamo_operator.shared.problems import without_credentials


def model(uri: str) -> DynamoModel:
    return DynamoModel(spec=DynamoModelSpec("a", "b", "lora", ModelSource(uri)))


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/loras/a@2",
        "hf://organisation/model@v1.0.0",
        "hf://model@main",
        "file:///models/a:b@c",
        "s3://bucket/a%20b",
    ],
)
def test_usual_addresses_have_none(uri: str) -> None:
    assert uri == without_credentials(uri)
    assert [] == list(model_warnings(model(uri)))
