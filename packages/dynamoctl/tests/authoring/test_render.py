"""`dynamoctl render` prints what the controllers would apply, or one line per problem."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from cyclopts import CycloptsError

from dynamo_legacy.api import DynamoDeployment
from dynamo_operator.crds import RESOURCES, custom_resource_definitions
from dynamo_operator.documents import documents
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.settings import RenderSettings
from dynamoctl.authoring.lint import errors_of
from dynamoctl.authoring.manifest import position, read_manifests, selected
from dynamoctl.authoring.render import print_objects
from dynamoctl.main import app
from kube_runtime.errors import ConfigError

GRAPH = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat
spec:
  services:
    Frontend:
      componentType: frontend
      replicas: 2
      extraPodSpec:
        mainContainer:
          image: example.com/frontend:1
    Worker:
      componentType: worker
      modelRef:
        name: Qwen/Qwen3-0.6B
      extraPodSpec:
        mainContainer:
          image: example.com/worker:1
"""
COMPONENT = """\
apiVersion: nvidia.com/v1alpha1
kind: DynamoComponentDeployment
metadata:
  name: alone
spec:
  componentType: worker
  extraPodSpec: {mainContainer: {image: "example.com/worker:1"}}
"""


class Render:
    """Renders texts, which become files, and files."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def file(self, text: str, name: str = "in.yaml") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def __call__(self, *given: str | Path, **options: Any) -> list[Any]:
        chosen = {"orchestrator": "deployment", "settings": None, "namespace": "", "output": "yaml"}
        files = [self.file(each) if isinstance(each, str) else each for each in given]
        print_objects([str(file) for file in files], **{**chosen, **options})
        return [each.value for each in documents("stdout", self.capsys.readouterr().out)]

    def refused(self, *given: str | Path, **options: Any) -> list[str]:
        with pytest.raises(ExceptionGroup) as caught:
            self(*given, **options)
        assert self.capsys.readouterr().out == ""
        return [str(error) for error in caught.value.exceptions]


@pytest.fixture
def render(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Render:
    return Render(tmp_path, capsys)


def identities(objects: list[Any]) -> list[tuple[str, str]]:
    return [(each["kind"], each["metadata"]["name"]) for each in objects]


def test_a_graph_becomes_its_components_and_everything_below(render: Render) -> None:
    objects = render(GRAPH)
    assert not any("ownerReferences" in each["metadata"] for each in objects)
    assert [
        ("ServiceAccount", "chat-k8s-service-discovery"),
        ("Role", "chat-k8s-service-discovery-role"),
        ("RoleBinding", "chat-k8s-service-discovery-binding"),
        ("PodDisruptionBudget", "chat-frontend"),
        ("DynamoComponentDeployment", "chat-frontend"),
        ("Service", "chat-frontend"),
        ("Deployment", "chat-frontend"),
        ("DynamoComponentDeployment", "chat-worker"),
        ("Service", "dynamo-model-fb68f5a6"),
        ("Service", "chat-worker"),
        ("Deployment", "chat-worker"),
    ] == identities(objects)
    (listed,) = render(GRAPH, output="json")
    assert objects == listed["items"]
    kinds = [each["kind"] for each in render(GRAPH, orchestrator="grove")]
    assert 1 == kinds.count("PodCliqueSet")
    assert not {"Deployment", "DynamoComponentDeployment"} & {*kinds}


def test_objects_get_the_namespace_of_the_command_line_unless_they_have_another(render: Render) -> None:
    objects = render(GRAPH, namespace="team")
    assert {"team"} == {each["metadata"]["namespace"] for each in objects}
    path = render.file(GRAPH.replace("  name: chat\n", "  name: chat\n  namespace: a\n"))
    assert [
        f'{path}:5:3: metadata.namespace: "a" does not match the namespace "b" of the command line'
    ] == render.refused(path, namespace="b")


def test_all_problems_that_lint_reports_are_listed_by_file_and_line(render: Render) -> None:
    bad = GRAPH.replace("replicas: 2", "replcias: 2\n      replicas: two").replace("name: Qwen", "nme: Qwen")
    later = render.file(COMPONENT.replace("image:", "imagee:"), "b.yaml")
    first = render.file(bad, "a.yaml")
    problems = render.refused(later, first)
    places = [position(problem.partition(": ")[0]) for problem in problems]
    assert sorted(places, key=lambda place: (place[0] == str(first), place)) == places
    linted = [
        str(error)
        for manifest in read_manifests([str(later), str(first)])
        for error in errors_of(manifest, "", RenderSettings())
    ]
    assert linted == problems
    assert 5 <= len(linted)


def test_several_documents_lists_folders_and_standard_input_are_read(
    render: Render, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.yaml").write_text(GRAPH, encoding="utf-8")
    (folder / "notes.txt").write_text("not: read", encoding="utf-8")
    other = GRAPH.replace("name: chat", "name: other")
    items = [documents("", text)[0].value for text in (COMPONENT, other)]
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(listed.encode())))
    names = {"chat-frontend", "alone", "other-frontend"}
    assert names <= {*replicas(render(folder, Path("-")))}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("replicas: 2", "replicas: two", ":9:7: spec.services.Frontend.replicas: "),
        ("replicas: 2", "replica: 2", ":9:7: spec.services.Frontend.replica: unknown field"),
        ("          image: example.com/worker:1\n", "          tty: true\n", ":18:9: "),
        ("kind: DynamoGraph", "kind: DynamoGrap", ":2:1: kind: "),
        ("  name: chat", "  labels: {}", ":3:1: metadata.name: "),
        ("spec:\n  services:", "spec:\n  spec: [", ":8:20: unreadable YAML: "),
        ("      replicas: 2\n", "      replicas: 2\n      replicas: 3\n", ":10:7: duplicate key 'replicas'"),
    ],
)
def test_each_problem_is_one_line_with_its_place(render: Render, old: str, new: str, expected: str) -> None:
    assert old in GRAPH
    path = render.file(GRAPH.replace(old, new, 1))
    found = render.refused(path)
    assert [True] == [line.startswith(f"{path}{expected}") for line in found], found


def test_all_problems_of_all_files_are_reported(render: Render) -> None:
    one = render.file(GRAPH.replace("replicas: 2", "replicas: -1"), "1.yaml")
    two = render.file(COMPONENT.replace("image:", "imge:"), "2.yaml")
    found = render.refused(one, two)
    assert {str(one), str(two)} == {line.partition(":")[0] for line in found}


def test_an_object_given_twice_is_refused(render: Render) -> None:
    path = render.file(f"{COMPONENT}---\n{COMPONENT}")
    message = f"{path}:12:3: metadata.name: duplicate object, first defined at {path}:1:1"
    assert [message] == render.refused(path)


def test_sub_folders_are_read_on_request_and_named_otherwise(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (
        "a.yaml",
        "tasks/b.yaml",
        "tasks/more/c.yml",
        "gitops/d.json",
        ".hidden/e.yaml",
        "text/f.txt",
    ):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"kind: {file.stem}\n" if file.suffix != ".json" else '{"kind": "d"}', encoding="utf-8"
        )
    everything = [it.value["kind"] for it in read_manifests([str(tmp_path)], is_recursive=True)]
    assert (["a", "d", "b", "c"], "") == (everything, capsys.readouterr().err)
    (only,) = read_manifests([str(tmp_path)])
    assert "a" == only.value["kind"]
    note = "2 sub-folders with manifests not read: gitops, tasks; -R reads them"
    assert f"note: {tmp_path}: {note}\n" == capsys.readouterr().err
    (tmp_path / "a.yaml").unlink()
    with pytest.raises(ExceptionGroup) as caught:
        read_manifests([str(tmp_path)])
    assert [f"{tmp_path}: no YAML or JSON file found; {note}"] == [str(it) for it in caught.value.exceptions]


def test_unreadable_sources_are_all_named(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    nothing = tmp_path / "nothing.yaml"
    nothing.write_text("# nothing\n", encoding="utf-8")
    with pytest.raises(ExceptionGroup, match="manifests") as alone:
        read_manifests([str(nothing)])
    assert [f"{nothing}: no objects found"] == [str(error) for error in alone.value.exceptions]
    with pytest.raises(ExceptionGroup) as caught:
        read_manifests([str(path) for path in (tmp_path / "none", empty, binary, nothing)])
    assert [
        f"{tmp_path}/none: No such file or directory",
        f"{empty}: no YAML or JSON file found",
        f"{binary}: expected UTF-8 text",
    ] == [str(error) for error in caught.value.exceptions]


CHART = """\
{apiVersion: v1, kind: ConfigMap, metadata: {name: config}, data: {a: b}}
---
{apiVersion: resource.nvidia.com/v1beta1, kind: ComputeDomain, metadata: {name: domain}}
---
{apiVersion: nvidia.com/v1, kind: ClusterPolicy, metadata: {name: policy}}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoModel
metadata: {name: m}
spec: {modelName: m, baseModelName: b}
"""


def test_objects_of_other_kinds_are_printed_as_they_are_and_ours_are_checked(render: Render) -> None:
    found = render(f"{CHART}---\n{GRAPH}")
    assert [each.value for each in documents("", CHART)] == found[:4]
    assert "chat-worker" in replicas(found)
    assert any("unknown field" in each for each in render.refused(CHART.replace("baseModelName", "base")))


EPP = """\
    Epp:
      componentType: epp
      eppConfig:
        config:
          apiVersion: inference.networking.x-k8s.io/v1alpha1
          kind: EndpointPickerConfig
          plugins: []
          schedulingProfiles: []
      extraPodSpec: {mainContainer: {image: "example.com/epp:1"}}
"""


def test_an_endpoint_picker_is_rendered_as_of_a_default_installation(render: Render) -> None:
    found = render(GRAPH + EPP)
    bindings = {it["metadata"]["name"]: it["roleRef"]["name"] for it in found if it["kind"] == "RoleBinding"}
    (role,) = (role for name, role in bindings.items() if name.startswith("epp-"))
    assert role.startswith("dynamo-platform-dynamo-operator-")
    (config,) = (it["spec"]["eppConfig"]["config"] for it in found if "eppConfig" in it.get("spec", {}))
    assert "EndpointPickerConfig" == config["kind"]


def test_tensorrt_on_several_nodes_is_rendered_as_of_a_default_installation(render: Render) -> None:
    graph = GRAPH.replace(
        "    Worker:\n",
        "    Worker:\n      multinode: {nodeCount: 2}\n      resources: {limits: {gpu: '8'}}\n",
    ).replace(
        "          image: example.com/worker:1\n",
        "          image: example.com/worker:1\n          args: [python3 -m dynamo.trtllm]\n",
    )
    found = render(graph, orchestrator="lws")
    assert any(each["kind"] == "LeaderWorkerSet" for each in found)
    (message,) = render.refused(graph, orchestrator="deployment")
    assert "choose one with --orchestrator" in message


SUSPENDED = GRAPH.replace("  name: chat\n", '  name: chat\n  annotations: {nvidia.com/suspend: "true"}\n')


def replicas(objects: list[Any]) -> dict[str, int]:
    deployments = (each for each in objects if each["kind"] == "Deployment")
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in deployments}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GRAPH, {"chat-frontend": 2, "chat-worker": 1}),
        (SUSPENDED, {"chat-frontend": 0, "chat-worker": 0}),
        (GRAPH.replace("spec:\n", "spec:\n  replicas: 3\n", 1), {"chat-frontend": 2, "chat-worker": 3}),
    ],
)
def test_replicas_are_those_that_the_controller_decides_on(
    render: Render, text: str, expected: dict[str, int]
) -> None:
    assert expected == replicas(render(text))


def test_a_settings_file_changes_what_is_rendered(render: Render) -> None:
    text = "natsAddress: nats://here:4222\nworkerRollout: managed\n"
    objects = render(GRAPH, settings=render.file(text, "settings.yaml"))
    assert "nats://here:4222" in json.dumps(objects)
    frontend, worker = replicas(objects)  # a managed rollout names the revision of workers
    assert "chat-frontend" == frontend
    assert worker.startswith("chat-worker-")


def test_a_facts_file_says_what_the_cluster_has_or_is_refused_with_its_place(render: Render) -> None:
    facts = render.file(
        "groveServed: true\nkaiServed: true\npullSecrets: {example.com: [key]}\n", "facts.yaml"
    )
    objects = render(GRAPH, facts=facts)
    (gang,) = (each for each in objects if each["kind"] == "PodCliqueSet")
    for each in gang["spec"]["template"]["cliques"]:
        assert "kai-scheduler" == each["spec"]["podSpec"]["schedulerName"]
        assert [{"name": "key"}] == each["spec"]["podSpec"]["imagePullSecrets"]

    facts = render.file("groveServe: true\n", "facts.yaml")
    with pytest.raises(ConfigError, match=r"unknown fact groveServe; did you mean .groveServed"):
        render(GRAPH, facts=facts)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    app()(["install", "crds", *arguments])
    return capsys.readouterr().out


def test_every_definition_is_printed_without_aliases_or_as_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys)
    assert list(custom_resource_definitions()) == list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    assert "&id" not in text
    found = msgspec.json.decode(printed(capsys, "-o", "json"))
    assert ("v1", "List") == (found["apiVersion"], found["kind"])
    assert list(custom_resource_definitions()) == found["items"]


def test_with_a_conversion_two_versions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (graph,) = yaml.load_all(printed(capsys, "dgd", "--conversion=dyn/hooks"), Loader=yaml.CSafeLoader)
    versions = [(each["name"], each["storage"]) for each in graph["spec"]["versions"]]
    assert [("v1alpha1", False), ("v1beta1", True)] == versions
    client = graph["spec"]["conversion"]["webhook"]["clientConfig"]
    assert {"service": {"namespace": "dyn", "name": "hooks", "path": "/convert"}} == client
    arguments = ("dgd", "--conversion=https://127.0.0.1:9443", "--stored=v1alpha1")
    (graph,) = yaml.load_all(printed(capsys, *arguments), Loader=yaml.CSafeLoader)
    assert [True, False] == [each["storage"] for each in graph["spec"]["versions"]]
    client = graph["spec"]["conversion"]["webhook"]["clientConfig"]
    assert {"url": "https://127.0.0.1:9443/convert"} == client
    (graph,) = yaml.load_all(printed(capsys, "dgd", "--stored=v1beta1"), Loader=yaml.CSafeLoader)
    assert ["v1beta1"] == [each["name"] for each in graph["spec"]["versions"]]
    assert "conversion" not in graph["spec"]
    with pytest.raises(ConfigError, match=r"invalid value .hooks. .expected NAMESPACE/SERVICE or a URL"):
        printed(capsys, "dgd", "--conversion=hooks")


def test_a_kind_is_picked_by_any_of_its_names_and_without_one_all_are_meant() -> None:
    for name in ("DynamoModel", "dynamomodels", "dynamomodels.nvidia.com", "dm", "DMODEL"):
        assert (DynamoModel,) == selected([name])
    assert RESOURCES == selected([])
    with pytest.raises(CycloptsError, match=r'unknown kind "pods" \(expected one of DynamoGraph'):
        selected(["dm", "pods"])


def test_kinds_of_the_older_generation_are_printed_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(yaml.safe_load_all(printed(capsys, "dm", "--legacy")))
    names = [each["spec"]["names"]["plural"] for each in found]
    legacy = ["dynamodeployments", "dynamonimdeployments", "dynamonimrequests", "dynamonims"]
    assert names == ["dynamomodels", *legacy]
    assert (DynamoDeployment,) == selected(["dynamodeployment"])
