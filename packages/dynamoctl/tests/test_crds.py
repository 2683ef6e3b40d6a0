"""`dynamoctl crds` prints CRDs that can be piped into kubectl."""

import msgspec
import pytest
import yaml
from cyclopts import CycloptsError

from dynamo_legacy.api import DynamoDeployment
from dynamo_operator.crds import RESOURCES, custom_resource_definitions
from dynamo_operator.models.api import DynamoModel
from dynamoctl.authoring.render import selected
from dynamoctl.main import app


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    app()(["crds", *arguments])
    return capsys.readouterr().out


def test_yaml_holds_every_definition_without_aliases(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    assert list(custom_resource_definitions()) == documents
    assert "&id" not in text


def test_json_is_a_list_that_kubectl_takes(capsys: pytest.CaptureFixture[str]) -> None:
    found = msgspec.json.decode(printed(capsys, "-o", "json"))
    assert ("v1", "List") == (found["apiVersion"], found["kind"])
    assert list(custom_resource_definitions()) == found["items"]


def test_a_kind_is_picked_by_any_of_its_names() -> None:
    for name in ("DynamoModel", "dynamomodels", "dynamomodels.nvidia.com", "dm", "DMODEL"):
        assert (DynamoModel,) == selected([name])


def test_without_a_name_all_kinds_are_meant() -> None:
    assert RESOURCES == selected([])


def test_kinds_of_the_older_generation_are_printed_on_demand(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = list(yaml.safe_load_all(printed(capsys, "dm", "--legacy")))
    names = [each["spec"]["names"]["plural"] for each in found]
    legacy = ["dynamodeployments", "dynamonimdeployments", "dynamonimrequests", "dynamonims"]
    assert names == ["dynamomodels", *legacy]
    assert (DynamoDeployment,) == selected(["dynamodeployment"])


def test_an_unknown_name_is_an_error_that_lists_the_kinds() -> None:
    with pytest.raises(CycloptsError, match=r'unknown kind "pods" \(expected one of DynamoGraph'):
        selected(["dm", "pods"])
