"""`dynamoctl convert` prints new objects on stdout and remarks on stderr, or one line for each problem."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynamo_operator.documents import documents
from dynamoctl.authoring.convert import convert
from dynamoctl.authoring.manifest import read_manifests
from dynamoctl.options import ConvertOptions
from kube_runtime.errors import ConfigErrors

OLD = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoDeployment
metadata: {name: disagg, namespace: ml}
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
metadata: {name: alone, namespace: ml}
spec:
  dynamoNim: frontend--v1
  dynamoTag: graphs.agg:Worker
"""
NIM = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoNim
metadata: {name: frontend--v1, namespace: ml}
spec: {tag: "frontend:v1", image: "example.com/x:1"}
"""
REQUEST = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoNimRequest
metadata: {name: frontend--v1, namespace: ml}
spec: {bentoTag: "frontend:v1"}
status:
  conditions:
  - {type: ImageExists, status: "True", reason: Succeeded, message: "example.com/built:1"}
"""
CONFIGURATION = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: frontend--v1, namespace: ml}
data:
  bento.yaml: |
    service: graphs.agg:Frontend
    entry_service: Frontend
    services:
    - name: Frontend
"""

Converted = Callable[..., tuple[int, list[Any], list[str]]]


@pytest.fixture
def converted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Converted:
    """Convert texts with options; the exit code, the objects, and the remarks or problems."""

    def of(*texts: str, prints_others: bool = True, **options: Any) -> tuple[int, list[Any], list[str]]:
        file = tmp_path / "old.yaml"
        file.write_text("---\n".join(texts), encoding="utf-8")
        code, problems = 2, list[str]()
        try:
            manifests = read_manifests([str(file)])
            code = convert(manifests, ConvertOptions(**options), prints_others=prints_others)
        except ConfigErrors as group:
            problems = [str(each) for each in group.exceptions]
        out, told = capsys.readouterr()
        remarks = [line.replace(f"{tmp_path}/", "") for line in (*told.splitlines(), *problems)]
        return code, [each.value for each in documents("stdout", out)], remarks

    return of


def main_container(graph: Any, service: str) -> Any:
    return graph["spec"]["services"][service]["extraPodSpec"]["mainContainer"]


def test_the_configuration_and_the_image_may_be_beside_the_deployment(converted: Converted) -> None:
    code, objects, remarks = converted(OLD, NIM, CONFIGURATION)
    assert code == 0
    graph, configuration = objects
    assert configuration["kind"] == "ConfigMap"
    assert graph["kind"] == "DynamoGraphDeployment"
    assert main_container(graph, "Frontend")["image"] == "example.com/x:1"
    assert "--service-name Frontend" in main_container(graph, "Frontend")["args"][0]
    path = "spec.services.Frontend.runMode"
    assert f"note: old.yaml:9:7: {path}: left out: no process has ever read it" in remarks
    _, [graph], _ = converted(OLD, NIM, CONFIGURATION, prints_others=False)  # as read from a cluster
    assert graph["kind"] == "DynamoGraphDeployment"


def test_the_command_line_wins_and_names_get_a_suffix(converted: Converted) -> None:
    _, [graph, _], _ = converted(OLD, NIM, CONFIGURATION, image="example.com/own:2", suffix="-v2")
    assert graph["metadata"]["name"] == "disagg-v2"
    assert main_container(graph, "Frontend")["image"] == "example.com/own:2"


def test_strict_makes_a_guess_a_problem(converted: Converted) -> None:
    assert converted(OLD, NIM, CONFIGURATION, is_strict=True)[0] == 1
    assert converted(f"{COMPONENT}  serviceName: Worker\n", NIM, is_strict=True)[0] == 0


def test_without_a_configuration_the_services_are_those_of_the_deployment(converted: Converted) -> None:
    _, [graph], remarks = converted(OLD, NIM)
    assert list(graph["spec"]["services"]) == ["Frontend"]
    assert any(each.startswith("dropped:") and "mainContainer.command" in each for each in remarks)


def owned_by(owners: str) -> str:
    return COMPONENT.replace("namespace: ml", f"namespace: ml, ownerReferences: {owners}")


def test_a_component_of_a_deployment_is_converted_with_it(converted: Converted) -> None:
    owned = owned_by("[{kind: DynamoDeployment, name: disagg, uid: u}]")
    _, objects, _ = converted(OLD, NIM, CONFIGURATION, owned)
    assert [each["kind"] for each in objects] == ["DynamoGraphDeployment", "ConfigMap"]


UNSERVED = f"{COMPONENT}  envs: [{{name: DYN_DEPLOYMENT_CONFIG, value: '<long JSON config>'}}]\n"
SOURCE = "unknown image of frontend--v1 (add its DynamoNim, or name one with --image)"
SERVICES = (
    "unknown services of frontend--v1 (add the ConfigMap frontend--v1, or name a file with --graph-config)"
)


@pytest.mark.parametrize(
    ("texts", "start", "text"),
    [
        ((owned_by("[Deployment]"), NIM), "old.yaml:1:1: ", "metadata.ownerReferences"),
        ((owned_by("5"), NIM), "old.yaml:1:1: ", "metadata.ownerReferences"),
        ((OLD, REQUEST), "old.yaml:5:3: spec.dynamoNim: ", SOURCE),
        ((OLD.partition("  services:")[0], NIM), "old.yaml:5:3: spec.dynamoNim: ", SERVICES),
        ((UNSERVED, NIM), "old.yaml:4:1: spec: what it becomes is invalid: ", ""),
    ],
    ids=["owners", "owner", "image", "services", "refused"],
)
def test_what_cannot_be_converted_is_a_problem_with_its_place_and_nothing_is_printed(
    texts: tuple[str, ...], start: str, text: str, converted: Converted
) -> None:
    _, objects, [*_, problem] = converted(*texts)
    assert objects == []
    assert problem.startswith(start)
    assert text in problem
