"""What people who know kubectl type first, and what they must see.

The cluster has the graphs `prod/chat`, `prod/search` (labelled team=search) and `test/chat`, the model
`prod/lora` that a pod of chat loads, the request `prod/sla` whose graph is search, and a scaling adapter of
chat's Decode. `prod` is not the namespace of the context.
"""

import json
import re
import shlex
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from dynamo_graphs import reader
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamoctl.main import run
from kube_runtime.client.client import Answer, Request
from kube_runtime.client.kubeconfig import Overrides
from kube_runtime.types.kinds import Job, Pod
from kube_runtime.types.meta import Key, Object, Resource
from kube_runtime.wire import path_of
from scripted.connections import connect_to
from scripted.transport import answer
from simulated.server import Server

SERVICES = {"Frontend": {"componentType": "frontend"}, "Decode": {"componentType": "worker", "replicas": 2}}


class Cluster(Server):
    """The simulated API server with its groups, and with the name of what it does not find."""

    async def send(self, request: Request) -> Answer:
        if request.path == "/apis":
            return answer(200, {"groups": [{"name": "nvidia.com"}, {"name": "apps"}]})
        response = await super().send(request)
        if response.status != 404:
            return response
        name = request.path.rpartition("/")[2]
        return answer(404, {"code": 404, "reason": "NotFound", "message": "", "details": {"name": name}})


@pytest.fixture(autouse=True)
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    cluster = Cluster()

    def create(type_: type[Resource], namespace: str, name: str, **fields: object) -> None:
        metadata: Object = {"namespace": namespace, "name": name}
        if type_ is DynamoComponentDeployment:
            owner = cluster.storage.read(path_of(DynamoGraphDeployment.KIND), Key("prod", "chat"))
            metadata["labels"] = {labels.GRAPH: "chat"}
            reference = {"kind": "DynamoGraphDeployment", "name": "chat", "uid": owner["metadata"]["uid"]}
            metadata["ownerReferences"] = [
                {**reference, "apiVersion": owner["apiVersion"], "controller": True}
            ]
        if name == "search":
            metadata["labels"] = {"team": "search"}
        cluster.storage.create(path_of(type_.KIND), type_.KIND.manifest(metadata, **fields))

    for namespace, name in (("prod", "chat"), ("prod", "search"), ("test", "chat")):
        create(DynamoGraphDeployment, namespace, name, spec={"services": SERVICES})
    model = {"modelName": "acme/support", "baseModelName": "Qwen/Qwen3-0.6B", "modelType": "lora"}
    endpoint = {"address": "http://10.0.0.1:9090", "podName": "chat-decode-0", "ready": True}
    create(DynamoModel, "prod", "lora", spec=model, status={"endpoints": [endpoint]})
    create(Pod, "prod", "chat-decode-0", spec={}, status={"phase": "Running"})
    profiling = {"profilerImage": "p:1", "config": {}}
    request = {"model": "Qwen/Qwen3-32B", "backend": "vllm", "profilingConfig": profiling}
    state = {"profilingJobName": "profile-sla", "deployment": {"name": "search", "namespace": "prod"}}
    create(DynamoGraphDeploymentRequest, "prod", "sla", spec=request, status=state)
    create(Job, "prod", "profile-sla", spec={})
    component = {"serviceName": "Decode", "componentType": "worker"}
    create(DynamoComponentDeployment, "prod", "chat-decode", spec=component)
    reference = {"name": "chat", "serviceName": "Decode"}
    create(
        DynamoGraphDeploymentScalingAdapter, "prod", "chat-decode", spec={"replicas": 2, "dgdRef": reference}
    )
    for name in ("prod", "test", "default"):
        cluster.storage.create("/api/v1/namespaces", {"metadata": {"name": name}})
    connect_to(cluster, monkeypatch)
    return cluster


def typed(line: str) -> int:
    """Run the command line as a shell would; its exit code."""
    try:
        result = run(shlex.split(line))
    except SystemExit as end:
        return int(end.code or 0)
    return result if isinstance(result, int) else 0


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("get -n prod", ["chat", "search"]),
        ("-n prod get", ["chat", "search"]),
        ("--namespace=prod get dgd", ["chat", "search"]),
        ("--namespace prod get graphs", ["chat", "search"]),
        ("get DynamoGraphDeployments -n prod", ["chat", "search"]),
        ("get dynamographdeployments.nvidia.com -n prod", ["chat", "search"]),
        ("get chat -n prod", ["chat"]),
        ("get dgd chat -n prod", ["chat"]),
        ("get dgd/chat -n prod", ["chat"]),
        ("get dgd chat search -n prod", ["chat", "search"]),
        ("get chat search -n prod", ["chat", "search"]),
        ("get dgd/chat dm/lora -n prod", ["dgd/chat", "dm/lora"]),
        ("get dgd,dm -n prod", ["dgd/chat", "dgd/search", "dm/lora"]),
        (
            "get all -n prod",
            ["dgd/chat", "dgd/search", "dcd/chat-decode", "dgdsa/chat-decode", "dm/lora", "dgdr/sla"],
        ),
        ("get dgdsa -n prod", ["chat-decode"]),
        ("get models -n prod", ["lora"]),
        ("get requests -n prod", ["sla"]),
        ("get -l team=search -n prod", ["search"]),
        ("get dgd --selector=team=search -n prod", ["search"]),
        ("get --field-selector metadata.name=chat -n prod", ["chat"]),
        ("get dgd -n prod --ignore-not-found nope", []),
        ("get -n prod --request-timeout=5s", ["chat", "search"]),
        ("--as jane --as-group dev get -n prod", ["chat", "search"]),
        ("--context it --cluster it --user me get -n prod", ["chat", "search"]),
    ],
)
def test_a_table_of_what_was_asked_for(
    line: str, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == typed(line)
    rows = [row for row in capsys.readouterr().out.splitlines() if row and not row.startswith("NAME")]
    assert names == [row.split()[0] for row in rows]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("get chat -n prod -o name", "dynamographdeployment.nvidia.com/chat\n"),
        ("get dm -n prod -oname", "dynamomodel.nvidia.com/lora\n"),
        ("get chat -n prod -o jsonpath={.metadata.name}", "chat"),
        ("get chat -n prod -o jsonpath='{.spec.services.Decode.replicas}'", "2"),
        ("get dgd -n prod -o=jsonpath='{.items[*].metadata.name}'", "chat search"),
        (
            """-n prod get -A -o jsonpath='{range .items[*]}{.metadata.namespace}{"\\n"}{end}'""",
            "prod\nprod\ntest\n",
        ),
        ("get chat -n prod --no-headers -o name", "dynamographdeployment.nvidia.com/chat\n"),
        ("status chat -n prod -o jsonpath={.ready}", "false"),
        ("status chat -n prod -o name", "dynamographdeployment.nvidia.com/chat\n"),
        ("why dm/lora -n prod -o jsonpath='{.kind}/{.name}'", "DynamoModel/lora"),
        ("status dgd chat -n prod -o name", "dynamographdeployment.nvidia.com/chat\n"),
        ("-n prod status dm lora -o name", "dynamomodel.nvidia.com/lora\n"),
        ("why -n prod dgdr sla -o jsonpath={.kind}", "DynamoGraphDeploymentRequest"),
        ("tree DynamoModel lora -n prod -o jsonpath={.kind}", "DynamoModel"),
        ("tree search -n prod -o name", "dynamographdeployment.nvidia.com/search\n"),
        ("tree dm/lora -n prod -o name", "dynamomodel.nvidia.com/lora\npod/chat-decode-0\n"),
        (
            "tree dgdsa/chat-decode -n prod -o name",
            (
                "dynamographdeploymentscalingadapter.nvidia.com/chat-decode\n"
                "dynamocomponentdeployment.nvidia.com/chat-decode\n"
            ),
        ),
        (
            "tree dgdr/sla -n prod -o name",
            (
                "dynamographdeploymentrequest.nvidia.com/sla\njob.batch/profile-sla\n"
                "dynamographdeployment.nvidia.com/search\n"
            ),
        ),
        ("tree dcd/chat-decode -n prod -o jsonpath={.children}", "[]"),
        ("events chat -n prod -o yaml", "--- []\n"),
    ],
)
def test_an_output_for_programs(line: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    typed(line)
    assert text == capsys.readouterr().out


def test_one_object_is_itself_and_several_are_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    typed("get chat -n prod -o json")
    assert "DynamoGraphDeployment" == json.loads(capsys.readouterr().out)["kind"]
    for line in ("get -n prod -o json", "get dgd chat search -n prod -o json"):
        typed(line)
        body = json.loads(capsys.readouterr().out)
        assert ("List", ["chat", "search"]) == (
            body["kind"],
            [it["metadata"]["name"] for it in body["items"]],
        )


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("get nope -n prod", 1, "Error from server (NotFound): graph nope not found in namespace prod"),
        ("get dgd chta -n prod", 1, 'not found in namespace prod; did you mean "chat"?'),
        ("get pods", 2, "expected `kubectl get pods`, or `dynamoctl tree NAME`"),
        ("get events", 2, "`kubectl get events`"),
        ("get pod chat-0", 2, "`kubectl get pod chat-0`"),
        (
            "get dgd,dmm",
            2,
            'unsupported kind "dmm" (expected one of dgd, dcd, dgdsa, dm, dgdr); did you mean "dm"?',
        ),
        ("get dgd chat -A", 2, "an object cannot be read by name across all namespaces"),
        ("get dgd chat -l a=b", 2, "expected either names or a selector"),
        ("get -o jsonpath={.items[*}", 2, 'expected ] at "}"'),
        ("get -o custom-columns=A:.b", 2, "expected one of wide, json, yaml, name, jsonpath="),
        ("get --as-group dev", 2, "--as-group requires --as"),
        ("gte", 2, 'unknown command "gte" of `dynamoctl` (did you mean "get"?)'),
        ("rollout stats chat", 2, 'unknown command "stats" of `dynamoctl rollout` (did you mean "status"?)'),
        ("get --al", 2, 'unknown flag "--al" of `dynamoctl get`'),
        ("status chat search", 2, 'unexpected argument "search"; see `dynamoctl status --help`'),
        ("status", 2, "missing NAME"),
        ("scale chat/Decode", 2, "missing --replicas NUMBER"),
        ("logs chat --tail", 2, "--tail: missing value (expected --tail LINES)"),
        ("logs chat --tail ten", 2, 'invalid value "ten" for --tail (expected a whole number)'),
        ("scale dgd chat --replicas 3", 2, 'invalid target "dgd/chat" (expected GRAPH/SERVICE'),
        (
            "apply -k overlays",
            2,
            "unknown flag -k (expected `kubectl kustomize FOLDER | dynamoctl apply -f -`)",
        ),
        ("apply -f x.yaml --dry-run=server", 2, "unknown flag --dry-run (expected `dynamoctl diff -f FILE`)"),
        ("lint --frobnicate x.yaml", 2, "unknown flag --frobnicate"),
        ("diff", 2, "missing file: expected FILE or --filename FILE"),
    ],
)
def test_an_error_in_the_words_that_were_typed(
    line: str, code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code == typed(line)
    out, err = capsys.readouterr()
    assert ("", 1) == (out, err.count("\n"))
    assert message in err
    assert not re.search(r"Unused Tokens|Parameter|Unable to convert|Invalid value|cyclopts", err)


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("delete chat -n team-a", "`kubectl delete dgd chat -n team-a`"),
        ("delete dgd chat", "`kubectl delete dgd chat`"),
        ("delete dm/lora --context it", "`kubectl delete dm/lora --context it`"),
        ("delete -f chat.yaml", "`kubectl delete -f chat.yaml`"),
        ("-n team-a edit chat", "`kubectl edit dgd chat -n team-a`"),
        (
            "describe dgd chat -n team-a",
            "`dynamoctl status chat -n team-a` and `dynamoctl why chat -n team-a`",
        ),
        ("describe dm/lora", "`dynamoctl status dm/lora` and `dynamoctl why dm/lora`"),
        ("restart chat", "`dynamoctl rollout restart chat`"),
        ("exec chat", "`kubectl exec -it POD -- sh`; `dynamoctl tree chat` lists the pods"),
        ("create -f chat.yaml", "`dynamoctl apply -f chat.yaml`"),
        ("create chat", "`dynamoctl new chat --model MODEL`"),
        ("wait chat", "`dynamoctl status --watch chat`"),
        ("api-resources", "`kubectl api-resources --api-group=nvidia.com`"),
        ("auth can-i get dgd", "`kubectl auth can-i get dgd`"),
        ("config current-context", "`kubectl config current-context`"),
        ("cluster-info", "`dynamoctl check`"),
        ("label dgd chat team=a", "`kubectl label dgd chat team=a`"),
        ("models", "`dynamoctl get dm`"),
        ("models lora -n prod", "`dynamoctl status dm/lora -n prod`"),
        ("requests", "`dynamoctl get dgdr`"),
        ("requests why sla", "`dynamoctl top dgdr/sla`"),
        ("crds --legacy", "`dynamoctl install crds --legacy`"),
        ("images --registry r.example.com", "`dynamoctl install images --registry r.example.com`"),
        ("uninstall --dry-run", "`dynamoctl install cleanup --dry-run`"),
    ],
)
def test_a_command_that_another_one_does(line: str, command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == typed(line)
    verb = line.removeprefix("-n team-a ").split()[0]
    assert f'error: unknown command "{verb}": use {command}\n' == capsys.readouterr().err


def test_labels_are_a_column_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == typed("get -n prod --show-labels --no-headers")
    assert ["-", "team=search"] == [row.split()[-1] for row in capsys.readouterr().out.splitlines()]


def test_the_flags_of_kubectl_reach_the_connection(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[Overrides] = []

    async def connect(*_: object, overrides: Overrides, **__: object) -> nullcontext[Server]:
        chosen.append(overrides)
        return nullcontext(server)

    monkeypatch.setattr(reader, "connect", connect)
    typed("--as jane --as-group dev --as-group ops --cluster c --user u --request-timeout 90 get -n prod")
    impersonated = (("Impersonate-User", "jane"), ("Impersonate-Group", "dev"), ("Impersonate-Group", "ops"))
    assert [Overrides("c", "u", impersonated, 90)] == chosen


def test_the_status_of_a_model_and_of_a_request_shows_what_they_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert 1 == typed("status dm/lora -n prod")
    assert "acme/support: lora of Qwen/Qwen3-0.6B" in capsys.readouterr().out
    assert 1 == typed("status dgdr/sla -n prod")
    out = capsys.readouterr().out
    assert ("Qwen/Qwen3-32B" in out, "DynamoGraphDeploymentRequest prod/sla: not ready" in out) == (
        True,
        True,
    )


def test_lint_reads_sub_folders_and_checks_what_is_readable(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    below = tmp_path / "below"
    below.mkdir()
    shutil.copy("examples/vllm-aggregated.yaml", tmp_path)
    (below / "binary.yaml").write_bytes(b"\xff\xfe")
    assert 0 == typed(f"lint -f {tmp_path}")
    assert "1 sub-folder with manifests not read: below; -R reads them" in capsys.readouterr().err
    for line in (f"lint -R -f {tmp_path}", f"lint {tmp_path} --recursive"):
        assert 1 == typed(line)
        out, err = capsys.readouterr()
        assert "expected UTF-8 text" in out
        assert "1 object in 2 files: 1 error" in err


@pytest.mark.parametrize(
    ("line", "usage"), [("help", "COMMAND"), ("help get", "get"), ("help rollout undo", "rollout undo")]
)
def test_help_is_a_command_too(line: str, usage: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == typed(line)
    assert capsys.readouterr().out.startswith(f"Usage: dynamoctl {usage}")
