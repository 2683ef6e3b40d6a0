"""`dynamoctl lint` says what admission would say, with the place of each field."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynamo_operator.cli.lint import Output, lint

GOOD = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat
spec:
  services:
    w:
      componentType: worker
      extraPodSpec:
        mainContainer:
          image: example.com/worker:1
"""
BAD = GOOD.replace("image: example.com/worker:1", "image: example.com/worker") + (
    "      ingress:\n        enabled: true\n      replicaz: 2\n"
)
ODD = GOOD.replace("worker:1", "worker:latest")
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata: 5\n"
MODEL = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoModel
metadata:
  name: m
spec:
  modelName: m
  baseModelName: b
  modelType: lora
"""


def linted(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str], output: Output = "table"
) -> tuple[int, str]:
    file = tmp_path / "in.yaml"
    file.write_text(text)
    code = lint([str(file)], settings=None, namespace="", output=output)
    return code, capsys.readouterr().out.replace(str(tmp_path), "")


def test_a_good_manifest_is_silent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (0, "") == linted(tmp_path, GOOD, capsys)


def test_problems_of_the_schema_and_of_the_rules_come_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = linted(tmp_path, BAD, capsys)
    assert 1 == code
    head, *rows = text.splitlines()
    assert ["PLACE", "LEVEL", "OBJECT", "PROBLEM"] == head.split()
    assert [
        [
            "/in.yaml:14:7",
            "error",
            "DynamoGraphDeployment/chat",
            'spec.services.w.replicaz: unknown field; did you mean "replicas"?',
        ],
        [
            "/in.yaml:12:7",
            "error",
            "DynamoGraphDeployment/chat",
            "spec.services[w].ingress.host is required when ingress is enabled",
        ],
    ] == [row.split(maxsplit=3) for row in rows]


def test_warnings_alone_are_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = linted(tmp_path, ODD, capsys, "json")
    assert 0 == code
    (found,) = json.loads(text)
    assert ("warning", "/in.yaml:11:11") == (found["level"], found["place"])
    assert "spec.services.w.extraPodSpec.mainContainer.image" == found["path"]


def test_objects_of_other_kinds_are_not_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (0, "") == linted(tmp_path, OTHER, capsys)


def test_every_kind_with_a_webhook_has_its_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = linted(tmp_path, MODEL, capsys)
    assert 1 == code
    assert "spec.source is required when modelType is 'lora'" in text


def test_sarif_has_line_and_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = linted(tmp_path, BAD, capsys, "sarif")
    results: list[Any] = json.loads(text)["runs"][0]["results"]
    region = results[1]["locations"][0]["physicalLocation"]["region"]
    assert {"startLine": 12, "startColumn": 7} == region
