"""`dynamoctl convert --to` prints documents of either version in one of them."""

from pathlib import Path

import pytest

from dynamoctl.authoring.manifest import read_manifests
from dynamoctl.authoring.versions import convert_versions
from kube_runtime.errors import ConfigErrors, leaves

OTHERS = """\
# What the graph reads.
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}  # as it is
"""
GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat
spec:
  services:
    Frontend:
      componentType: frontend
      # Streams long answers.
      ingress:
        enabled: true
        host: chat
      extraPodSpec:
        mainContainer:
          image: example.com/vllm:1
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "in.yaml"
    file.write_text(f"{OTHERS}---\n{GRAPH}")
    return file


def test_other_objects_and_comments_stay_and_stderr_has_what_has_no_field(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    convert_versions(read_manifests([str(file)]), "v1beta1", "yaml")
    out, err = capsys.readouterr()
    assert out.startswith(f"{OTHERS}---\napiVersion: nvidia.com/v1beta1\n")
    assert "# Streams long answers." in out
    assert f"note: {file}:6:1: v1beta1 has no field for spec.services.Frontend.ingress;" in err
    assert "the annotation nvidia.com/dgd-spec keeps it" in err


def test_an_autoscaler_names_its_adapter_in_the_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "in.yaml"
    text = """\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: chat}
spec:
  scaleTargetRef:
    apiVersion: nvidia.com/v1beta1
    kind: DynamoGraphDeploymentScalingAdapter # of the workers
    name: chat-worker
  maxReplicas: 8
"""
    file.write_text(text)
    convert_versions(read_manifests([str(file)]), "v1alpha1", "yaml")
    assert (text.replace("v1beta1", "v1alpha1"), "") == capsys.readouterr()


def test_a_converted_file_stays_as_it_is(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert_versions(read_manifests([str(file)]), "v1beta1", "yaml")
    once = capsys.readouterr().out
    file.write_text(once)
    convert_versions(read_manifests([str(file)]), "v1beta1", "yaml")
    assert (once, "") == capsys.readouterr()


def test_a_file_of_the_version_is_printed_to_the_letter(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    convert_versions(read_manifests([str(file)]), "v1alpha1", "yaml")
    assert f"{OTHERS}---\n{GRAPH}" == capsys.readouterr().out


def test_with_a_problem_nothing_is_printed_and_the_problem_has_its_line(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{OTHERS}---\n{GRAPH.replace('componentType', 'type')}")
    with pytest.raises(ConfigErrors) as raised:
        convert_versions(read_manifests([str(file)]), "v1beta1", "yaml")
    (problem,) = leaves(raised.value)
    assert f"{file}:13:7" == problem.source
    assert "" == capsys.readouterr().out
