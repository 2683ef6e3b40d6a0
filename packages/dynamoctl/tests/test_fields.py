"""`dynamoctl explain` and `schema`: the fields of our kinds, as users write them."""

import json

import jsonschema_rs
import pytest
import yaml
from cyclopts import CycloptsError

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.authoring.lint import editor_schema, explained, field_of, print_field
from dynamoctl.authoring.render import selected
from dynamoctl.screen import plain
from kube_runtime.kind import Object


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("services.resources.limits.gpu", "spec.services.<name>.resources.limits.gpu"),
        ("dgd.spec.services.Frontend.replicas", "spec.services.<name>.replicas"),
        ("services.<name>.envs", "spec.services.<name>.envs"),
        ("pvcs.size", "spec.pvcs[].size"),
        ("DynamoModel.spec.baseModelName", "spec.baseModelName"),
        ("dgdr.status.state", "status.state"),
        (
            "services.resources.limits.custom.rdma",
            "spec.services.<name>.resources.limits.custom.<name>",
        ),
        ("", ""),
    ],
)
def test_a_path_as_users_write_it(path: str, found: str) -> None:
    assert found == field_of(path)[1].path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("services.replica", 'did you mean "replicas"'),
        ("servics", 'did you mean "services"'),
        ("services.replicas.more", "it has no fields"),
        ("pvcs.xyzzy", "fields: "),
    ],
)
def test_a_field_that_is_not_there(path: str, text: str) -> None:
    with pytest.raises(CycloptsError, match=text):
        field_of(path)


def test_what_is_said_of_a_field() -> None:
    text = plain(*explained(*field_of("dm.spec")))
    assert "FIELD     spec" in text
    assert "modelName" in text
    assert "* is required" in text
    assert "DEFAULT   base" in plain(*explained(*field_of("dm.spec.modelType")))


def test_the_schema_of_a_field_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    print_field("services.replicas", "json")
    found = json.loads(capsys.readouterr().out)
    assert ("DynamoGraphDeployment", "integer") == (found["kind"], found["schema"]["type"])


GRAPH = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  services:
    Frontend: {componentType: frontend, replicas: 1}
"""


def mistakes(schema: Object, text: str) -> int:
    validator = jsonschema_rs.validator_for(schema)
    return len(list(validator.iter_errors(yaml.safe_load(text))))


@pytest.mark.parametrize("kinds", [("dgd",), ()])
def test_the_schema_for_editors(kinds: tuple[str, ...]) -> None:
    schema = editor_schema(selected(kinds))
    assert "draft-07" in schema["$schema"]
    assert 0 == mistakes(schema, GRAPH)
    assert 0 < mistakes(schema, GRAPH.replace("replicas", "replica"))
    assert 0 < mistakes(schema, GRAPH.replace("DynamoGraphDeployment", "Deployment"))


def test_the_schema_for_editors_has_texts() -> None:
    schema = editor_schema((DynamoGraphDeployment,))
    assert schema["properties"]["spec"]["description"]
