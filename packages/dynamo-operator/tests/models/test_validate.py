"""The address of a model's weights: credentials are reported, never repeated, and taken out of texts."""

import pytest

from dynamo_operator.models.api import DynamoModel, DynamoModelSpec, ModelSource
from dynamo_operator.models.validate import model_problems, model_warnings
from dynamo_operator.shared.problems import has_credentials, without_credentials


def model(uri: str) -> DynamoModel:
    return DynamoModel(spec=DynamoModelSpec("a", "b", "lora", ModelSource(uri)))


@pytest.mark.parametrize(
    "uri",
    [
        "s3://AKIA123:to/p+secret@bucket/x",
        "s3://bucket/x?X-Amz-Signature=secret",
        "hf://user:secret@organisation/model",
        "hf://hf_secretsecret@organisation/model",
    ],
)
def test_an_address_with_credentials_is_warned_of(uri: str) -> None:
    assert has_credentials(uri)
    (warning,) = model_warnings(model(uri))
    assert "secret@" not in str(warning)
    assert "in a Secret" in str(warning)


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


def test_the_refusal_of_an_address_does_not_tell_its_credentials() -> None:
    (problem,) = model_problems(model("https://user:topsecret@host/x?token=topsecret"))
    assert "topsecret" not in str(problem)
    text = "source URI must start with 's3://', 'hf://' or 'file://', got: https://***@host/x?***"
    assert text in str(problem)
