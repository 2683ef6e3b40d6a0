"""`dynamoctl convert` prints new objects on stdout and remarks on stderr, or one line for each problem."""

from pathlib import Path
from typing import Any

import pytest

from dynamo_operator.documents import documents
from dynamoctl.authoring.convert import convert
from dynamoctl.authoring.render import read_manifests
from dynamoctl.options import ConvertOptions

OLD = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoDeployment
metadata:
  name: disagg
  namespace: ml
spec:
  dynamoNim: frontend:v1
  services:
    Frontend:
      replicas: 2
      runMode: {standalone: true}
"""
COMPONENT = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoNimDeployment
metadata:
  name: alone
  namespace: ml
spec:
  dynamoNim: frontend--v1
  dynamoTag: graphs.agg:Worker
"""
NIM = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoNim
metadata:
  name: frontend--v1
  namespace: ml
spec:
  tag: frontend:v1
  image: example.com/x:1
"""
REQUEST = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoNimRequest
metadata:
  name: frontend--v1
  namespace: ml
spec:
  bentoTag: frontend:v1
status:
  conditions:
  - {type: ImageExists, status: "True", reason: Succeeded, message: "example.com/built:1"}
"""
CONFIGURATION = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: frontend--v1
  namespace: ml
data:
  bento.yaml: |
    service: graphs.agg:Frontend
    entry_service: Frontend
    services:
    - name: Frontend
"""


def converted(
    folder: Path, capsys: pytest.CaptureFixture[str], *texts: str, **options: Any
) -> tuple[int, list[Any], list[str]]:
    """The exit code, the objects and the remarks."""
    file = folder / "old.yaml"
    file.write_text("---\n".join(texts), encoding="utf-8")
    code = convert(read_manifests([str(file)]), ConvertOptions(**options))
    out, told = capsys.readouterr()
    remarks = told.replace(f"{folder}/", "").splitlines()
    return int(code), [each.value for each in documents("stdout", out)], remarks


def refused(folder: Path, capsys: pytest.CaptureFixture[str], *texts: str) -> list[str]:
    with pytest.raises(ExceptionGroup) as caught:
        converted(folder, capsys, *texts)
    assert capsys.readouterr().out == ""
    return [str(each).replace(f"{folder}/", "") for each in caught.value.exceptions]


def main_container(graph: Any, service: str) -> Any:
    return graph["spec"]["services"][service]["extraPodSpec"]["mainContainer"]


def test_the_configuration_and_the_image_may_be_beside_the_deployment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, objects, remarks = converted(tmp_path, capsys, OLD, NIM, CONFIGURATION)
    assert code == 0
    graph, configuration = objects
    assert configuration["kind"] == "ConfigMap"
    assert graph["kind"] == "DynamoGraphDeployment"
    assert main_container(graph, "Frontend")["image"] == "example.com/x:1"
    assert "--service-name Frontend" in main_container(graph, "Frontend")["args"][0]
    path = "spec.services.Frontend.runMode"
    assert f"note: old.yaml:11:7: {path}: left out: no process has ever read it" in remarks


def test_a_request_says_what_it_has_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, [component], _ = converted(tmp_path, capsys, REQUEST, COMPONENT)
    container = component["spec"]["extraPodSpec"]["mainContainer"]
    assert (component["kind"], container["image"]) == ("DynamoComponentDeployment", "example.com/built:1")


def test_the_command_line_wins_and_names_get_a_suffix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {"image": "example.com/own:2", "suffix": "-v2"}
    _, [graph, _], _ = converted(tmp_path, capsys, OLD, NIM, CONFIGURATION, **options)
    assert graph["metadata"]["name"] == "disagg-v2"
    assert main_container(graph, "Frontend")["image"] == "example.com/own:2"


def test_strict_makes_a_guess_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert converted(tmp_path, capsys, OLD, NIM, CONFIGURATION, is_strict=True)[0] == 1
    plain = COMPONENT.replace("graphs.agg:Worker", "graphs.agg:Worker\n  serviceName: Worker")
    assert converted(tmp_path, capsys, plain, NIM, is_strict=True)[0] == 0


def test_without_a_configuration_the_services_are_those_of_the_deployment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, [graph], remarks = converted(tmp_path, capsys, OLD, NIM)
    assert list(graph["spec"]["services"]) == ["Frontend"]
    assert any(each.startswith("dropped:") and "mainContainer.command" in each for each in remarks)


def test_a_component_of_a_deployment_is_converted_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owner = "\n  ownerReferences: [{kind: DynamoDeployment, name: disagg, uid: u}]\nspec:"
    owned = COMPONENT.replace("\nspec:", owner)
    _, objects, _ = converted(tmp_path, capsys, OLD, NIM, CONFIGURATION, owned)
    assert [each["kind"] for each in objects] == ["DynamoGraphDeployment", "ConfigMap"]


@pytest.mark.parametrize("owners", ["[Deployment]", "5"])
def test_an_owner_that_is_no_object_is_a_problem_with_its_place(
    owners: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owned = COMPONENT.replace("\nspec:", f"\n  ownerReferences: {owners}\nspec:")
    [problem] = refused(tmp_path, capsys, owned, NIM)
    assert problem.startswith("old.yaml:1:1: ")
    assert "metadata.ownerReferences" in problem


def test_what_cannot_be_resolved_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = OLD.partition("  services:")[0]
    at = "old.yaml:7:3: spec.dynamoNim"
    image = f"{at}: unknown image of frontend--v1 (add its DynamoNim, or name one with --image)"
    where = "add the ConfigMap frontend--v1, or name a file with --graph-config"
    services = f"{at}: unknown services of frontend--v1 ({where})"
    assert refused(tmp_path, capsys, OLD) == [image]
    assert refused(tmp_path, capsys, bare, NIM) == [services]


def test_what_the_operator_would_refuse_is_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = "\n  envs: [{name: DYN_DEPLOYMENT_CONFIG, value: '<long JSON config>'}]\n"
    broken = COMPONENT.rstrip() + config
    [problem] = refused(tmp_path, capsys, broken, NIM)
    assert problem.startswith("old.yaml:6:1: spec: what it becomes is invalid: ")


def test_what_was_read_from_a_cluster_is_not_printed_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(f"{OLD}---\n{NIM}---\n{CONFIGURATION}", encoding="utf-8")
    assert convert(read_manifests([str(file)]), ConvertOptions(), prints_others=False) == 0
    [graph] = documents("stdout", capsys.readouterr().out)
    assert graph.value["kind"] == "DynamoGraphDeployment"
