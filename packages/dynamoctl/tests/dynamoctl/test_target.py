"""Which object a command line means: every name of a kind that kubectl takes, in any case."""

import pytest
from cyclopts import CycloptsError

from dynamo_graphs.reader import STATED
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import Stated
from dynamoctl.target import parse_object, parse_service


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("chat", DynamoGraphDeployment),
        ("dgd/chat", DynamoGraphDeployment),
        ("DynamoGraphDeployment/chat", DynamoGraphDeployment),
        ("dynamographdeployments/chat", DynamoGraphDeployment),
        ("dynamographdeployments.nvidia.com/chat", DynamoGraphDeployment),
        ("dynamographdeployment.v1alpha1.nvidia.com/chat", DynamoGraphDeployment),
        ("DCD/chat", DynamoComponentDeployment),
        ("dgdsa/chat", DynamoGraphDeploymentScalingAdapter),
        ("dmodel/chat", DynamoModel),
        ("dm/chat", DynamoModel),
        ("dgdr/chat", DynamoGraphDeploymentRequest),
    ],
)
def test_a_kind_has_many_names(text: str, type_: type[Stated]) -> None:
    assert (type_, "chat") == parse_object(text, STATED)


@pytest.mark.parametrize("text", ["", "dgd/", "/chat", "a/b/c", "pod/chat", "..", "chat?x=1", "Chat"])
def test_an_invalid_target_is_a_usage_error(text: str) -> None:
    with pytest.raises(CycloptsError):
        parse_object(text, STATED)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("chat", ("chat", "")),
        ("chat/Decode", ("chat", "Decode")),
        ("dgd/chat", ("chat", "")),
        ("DGD/chat/Decode", ("chat", "Decode")),
        ("dgd", ("dgd", "")),
    ],
)
def test_a_target_may_name_the_kind(text: str, names: tuple[str, str]) -> None:
    assert names == parse_service(text)
