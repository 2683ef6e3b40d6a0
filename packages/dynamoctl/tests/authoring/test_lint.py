"""`dynamoctl lint` says what admission would say, with the place of each field."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
import yaml
from cyclopts import CycloptsError
from msgspec import Raw

from dynamo_graphs.versions import in_version
from dynamo_legacy.admission import LEGACY_RULES
from dynamo_operator.admission.decide import RULES, AnyRules, ReviewContext, decide
from dynamo_operator.component.validate import most_bytes
from dynamo_operator.settings import RenderSettings
from dynamoctl.authoring.lint import (
    Output,
    editor_schema,
    explained,
    field_of,
    in_api_versions,
    lint,
    print_field,
)
from dynamoctl.authoring.manifest import selected
from dynamoctl.screen import plain
from specs import MANIFEST as GOOD

BAD = GOOD.replace("image: example.com/worker:1", "image: example.com/worker") + (
    "      ingress:\n        enabled: true\n      replicaz: 2\n"
)
ODD = GOOD.replace("worker:1", "worker:latest")
OTHER = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\ndata: 5\n"
MODEL = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoModel
metadata: {name: m}
spec: {modelName: m, baseModelName: b, modelType: lora}
"""


Linted = Callable[..., tuple[int, str]]


@pytest.fixture
def linted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Linted:
    """Lint a text, in a format; the exit code and the output, without the name of the folder."""

    def of(text: str, output: Output = "table") -> tuple[int, str]:
        file = tmp_path / "in.yaml"
        file.write_text(text)
        code = lint([str(file)], settings=None, namespace="", output=output)
        return code, capsys.readouterr().out.replace(str(tmp_path), "")

    return of


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        OTHER,
        "apiVersion: 5\nkind: {}\n",
        *(
            f"{GOOD}---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: a, namespace: [b]}}\n"
            for kind in ("ConfigMap", "PersistentVolumeClaim")
        ),
    ],
    ids=["good", "other kind", "a kind that is no text", "odd ConfigMap", "odd claim"],
)
def test_a_good_manifest_and_objects_of_other_kinds_are_silent(linted: Linted, text: str) -> None:
    assert (0, "") == linted(text)


EVERYTHING = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat
spec:
  backendFramework: vlm
  services:
    w:
      componentType: fronted
      replicas: two
      serviceNam: x
      resources:
        limits:
          gpu: one
          nvidia.com/gpu: "1"
          rdma/ib: "1"
      extraPodSpec:
        mainContainer:
          image: example.com/x:latest
          env: 5
          args: [run]
"""


def test_no_problem_hides_another_and_all_come_in_the_order_of_their_lines(linted: Linted) -> None:
    code, text = linted(EVERYTHING, "json")
    assert 1 == code
    found = json.loads(text)
    said = "spec.services.w"
    assert [
        (6, "error", "spec.backendFramework"),
        (9, "warning", f"{said}.componentType"),
        (10, "error", f"{said}.replicas"),
        (11, "error", f"{said}.serviceNam"),
        (13, "error", f"{said}.resources.limits.nvidia.com/gpu"),
        (14, "error", f"{said}.resources.limits.gpu"),
        (16, "error", f"{said}.resources.limits.rdma/ib"),
        (19, "warning", f"{said}.extraPodSpec.mainContainer.image"),
        (20, "error", f"{said}.extraPodSpec.mainContainer.env"),
    ] == [(int(each["place"].rsplit(":", 2)[1]), each["level"], each["path"]) for each in found]

    _, text = linted(EVERYTHING)
    assert 'unknown field; use "gpu", for example gpu: "1"' in text
    assert 'custom: {"rdma/ib": "1"}' in text


CLAIM = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: models}
spec: {accessModes: [MODE], resources: {requests: {storage: 1Gi}}}
"""
USER = GOOD.replace("spec:\n", "spec:\n  pvcs: [{name: models}]\n").replace(
    "      componentType: worker\n",
    "      componentType: worker\n      replicas: 2\n      volumeMounts: [{name: models, mountPoint: /m}]\n",
)


EPP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: picker}
data: {config.yaml: ""}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  services:
    Epp:
      componentType: epp
      eppConfig: {configMapRef: {name: picker, key: KEY}}
      extraPodSpec: {mainContainer: {image: "example.com/epp:1"}}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{USER}---\n{CLAIM.replace('MODE', 'ReadWriteOnce')}", 1),
        (f"{USER}---\n{CLAIM.replace('MODE', 'ReadWriteMany')}", 0),
        (EPP.replace("KEY", "config.yaml"), 0),
        (EPP.replace("KEY", "other.yaml"), 1),
    ],
    ids=["one writer", "many writers", "key", "missing key"],
)
def test_claims_and_config_maps_in_the_file_are_known(linted: Linted, text: str, expected: int) -> None:
    code, found = linted(text, "json")
    assert (0, expected) == (code, len(json.loads(found)))


def test_every_kind_with_a_webhook_has_its_rules(linted: Linted) -> None:
    code, text = linted(MODEL, "sarif")
    assert 1 == code
    (result,) = json.loads(text)["runs"][0]["results"]
    assert "spec.source is required when modelType is 'lora'" in result["message"]["text"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert {"startLine": 4, "startColumn": 1} == region


OLDER = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoDeployment
metadata: {name: disagg}
spec:
  dynamoNim: frontend
  services:
    Frontend:
      replicas: null
      replicaz: 2
      runMode: {standalone: true}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoNim
metadata: {name: frontend--jh2o6dqz}
spec: {tag: "frontend:jh2o6dqz"}
"""


def test_manifests_of_the_older_generation_are_checked_too(linted: Linted) -> None:
    code, text = linted(OLDER, "json")
    assert 1 == code
    service = "spec.services.Frontend"
    assert [
        ("5:3", "error", 'spec.dynamoNim: invalid tag "frontend"'),
        ("9:7", "error", f'{service}.replicaz: unknown field; did you mean "replicas"?'),
        ("10:7", "warning", f"{service}.runMode: has no effect: no process has ever read it"),
        ("15:1", "error", "spec.image: this field is required"),
    ] == [
        (each["place"].partition(":")[2], each["level"], each["message"].partition(" (")[0])
        for each in json.loads(text)
    ]


REQUIRED = {
    "DynamoModel": {"modelName": "m", "baseModelName": "b"},
    "DynamoGraphDeploymentRequest": {"model": "m", "backend": "vllm", "profilingConfig": {}},
    "DynamoDeployment": {"dynamoNim": "a:b"},
    "DynamoNimDeployment": {"dynamoNim": "a--b", "dynamoTag": "a:B"},
    "DynamoNimRequest": {"bentoTag": "a:b"},
}


@pytest.mark.parametrize("rules", [*RULES, *LEGACY_RULES], ids=lambda rules: rules.type_.KIND.name)
def test_the_size_that_admission_refuses_is_an_error(linted: Linted, rules: AnyRules) -> None:
    kind, settings = rules.type_.KIND, RenderSettings()
    document = {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": {"name": "chat", "labels": {f"label-{number}": "x" * 50 for number in range(1200)}},
        "spec": REQUIRED.get(kind.name, {}),
    }
    code, text = linted(json.dumps(document), "json")
    messages = [finding["message"] for finding in json.loads(text) if finding["path"] == "document"]
    limit = f"(limit {most_bytes(rules.type_, settings)}, --largest-object-bytes)"
    (refused,) = decide(rules, Raw(msgspec.json.encode(document)), None, ReviewContext(settings)).problems
    for message in (*messages, str(refused)):
        assert message.startswith("document: the object has 7")
        assert message.endswith(limit)
    assert (1, 1) == (code, len(messages))


LATER = """\
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  components:
  - name: Frontend
    type: frontend
    podTemplate:
      spec:
        containers:
        - {name: main, image: example.com/vllm:1.5.0, command: [python3, -m, dynamo.frontend]}
  - name: Decode
    type: decode
    replicas: -1
    podTemplate:
      spec:
        containers:
        - name: main
          imagePullPolicy: Always
          command: [python3, -m, dynamo.vllm]
          resources: {limits: {nvidia.com/gpu: "1.5"}}
"""


def test_a_document_of_v1beta1_is_checked_in_its_own_fields_and_lines(linted: Linted) -> None:
    code, text = linted(LATER, "json")
    container = "spec.components[1].podTemplate.spec.containers[0]"
    at = {finding["path"]: finding for finding in json.loads(text)}
    assert 1 == code
    assert {"spec.components[1].replicas", f"{container}.image"} <= at.keys()
    assert "/in.yaml:14:5" == at["spec.components[1].replicas"]["place"]  # of the schema of v1beta1
    assert "/in.yaml:18:11" == at[f"{container}.image"]["place"]  # of a rule of both versions


def test_a_field_that_v1beta1_does_not_have_is_unknown(linted: Linted) -> None:
    code, text = linted(GOOD.replace("v1alpha1", "v1beta1"), "json")
    (finding,) = [it for it in json.loads(text) if "unknown field" in it["message"]]
    assert (1, "spec.services") == (code, finding["path"])


def test_rules_of_v1beta1_alone_count(linted: Linted) -> None:
    _, text = linted(LATER.replace("type: decode", "type: decode\n    frontendSidecar: x"), "json")
    assert "spec.components[1].frontendSidecar" in {finding["path"] for finding in json.loads(text)}


@pytest.mark.parametrize("output", ["json", "sarif"])
def test_findings_come_file_by_file_and_a_file_that_cannot_be_read_hides_no_other(
    output: Output, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = {"b": f"{BAD}---\n{OTHER}", "a": ODD, "d": "{{ if }}: x\n", "c": "\udcff", "none": ""}
    files = {name: tmp_path / f"{name}.yaml" for name in texts}
    for name in ("a", "b", "c", "d"):
        files[name].write_text(texts[name], encoding="utf-8", errors="surrogateescape")
    assert 1 == lint([str(each) for each in files.values()], settings=None, namespace="", output=output)
    out, err = capsys.readouterr()
    assert "2 objects in 5 files: 5 errors, 3 warnings\n" == err
    assert ["b"] * 4 + ["a", "d", "c", "none"] == re.findall(rf"{tmp_path}/(\w+)\.yaml", out)
    assert "replicaz" in out


def test_a_switch_without_enabled_is_off(linted: Linted) -> None:
    text = f"{GOOD}      scalingAdapter: {{}}\n      ingress:\n        host: x\n"
    code, found = linted(text, "json")
    assert 0 == code
    assert [
        ("warning", "spec.services.w.scalingAdapter: has no effect without enabled: true"),
        ("warning", "spec.services.w.ingress: exposes nothing without enabled: true"),
    ] == [(finding["level"], finding["message"]) for finding in json.loads(found)]
    text = f"{GOOD}      scalingAdapter:\n        enabled: false\n      ingress: {{}}\n"
    assert (0, "[]\n") == linted(text, "json")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("services.resources.limits.gpu", "spec.services.<name>.resources.limits.gpu"),
        ("dgd.spec.services.Frontend.replicas", "spec.services.<name>.replicas"),
        ("services.<name>.envs", "spec.services.<name>.envs"),
        ("pvcs.size", "spec.pvcs[].size"),
        ("components.replicas", "spec.components[].replicas"),
        ("dgdr.hardware.gpuSku", "spec.hardware.gpuSku"),
        ("DynamoModel.spec.baseModelName", "spec.baseModelName"),
        ("dgdr.status.state", "status.state"),
        ("services.resources.limits.custom.rdma", "spec.services.<name>.resources.limits.custom.<name>"),
        ("", ""),
    ],
)
def test_a_path_as_users_write_it(path: str, found: str) -> None:
    assert found == field_of(path)[1].path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("services.replica", 'did you mean "replicas"'),
        ("componets", 'did you mean "components"'),
        ("services.replicas.more", "it has no fields"),
        ("components.replica", 'did you mean "replicas"'),
        ("pvcs.xyzzy", "fields: "),
    ],
)
def test_an_unknown_field_is_a_usage_error(path: str, text: str) -> None:
    with pytest.raises(CycloptsError, match=text):
        field_of(path)


def test_explain_shows_type_default_and_description_of_a_field(capsys: pytest.CaptureFixture[str]) -> None:
    text = plain(*explained(*field_of("dm.spec")))
    assert "FIELD     spec" in text
    assert "modelName" in text
    assert "* is required" in text
    assert "DEFAULT   base" in plain(*explained(*field_of("dm.spec.modelType")))

    print_field("services.replicas", "json")
    found = json.loads(capsys.readouterr().out)
    assert ("DynamoGraphDeployment", "integer") == (found["kind"], found["schema"]["type"])


@pytest.mark.parametrize("kinds", [("dgd",), ()])
def test_the_schema_for_editors(kinds: tuple[str, ...]) -> None:
    schema = editor_schema(in_api_versions(selected(kinds)))
    assert "draft-07" in schema["$schema"]
    assert any("description" in case["then"]["properties"].get("spec", ()) for case in schema["allOf"])
    validator = jsonschema_rs.validator_for(schema)
    later = in_version(yaml.safe_load(GOOD), "v1beta1")
    assert validator.is_valid(yaml.safe_load(GOOD))
    assert validator.is_valid(later)
    for wrong in (
        yaml.safe_load(GOOD.replace("args", "arg")),
        yaml.safe_load(GOOD.replace("DynamoGraphDeployment", "Deployment")),
        yaml.safe_load(GOOD.replace("DynamoGraphDeployment", "DynamoModel")),
        {**later, "apiVersion": "nvidia.com/v1alpha1"},
        {**later, "kind": "DynamoModel"},
    ):
        assert not validator.is_valid(wrong)


def test_a_field_of_v1beta1_is_explained_from_its_own_schema() -> None:
    resource, field = field_of("components.podTemplate.spec.containers.image", "nvidia.com/v1beta1")
    assert "nvidia.com/v1beta1" == resource.KIND.api_version
    assert "spec.components[].podTemplate.spec.containers[].image" == field.path


def test_a_kind_without_the_version_is_an_error() -> None:
    with pytest.raises(CycloptsError, match="DynamoModel has no version"):
        field_of("dm.spec", "nvidia.com/v1beta1")
