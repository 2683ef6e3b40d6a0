"""Forty tasks, each with the line that a person types first: an ML engineer, a Python user, and one on call.

They know kubectl and Python, and have read no page of ours: the lines were written before the commands were.
All tasks share one playground, in this order, because a task may need what an earlier one created. A line is
repeated while the cluster is still busy. `pytest -rP` prints a row for each.
"""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3000)]

ROOT = Path(__file__).parents[3]
CONTROL_PLANE = "dynamo-operator/controlplane"
WORKER = "    - name: Worker\n"
POD = "      podTemplate:\n        spec:\n          containers:\n"
CHAT = (
    (ROOT / "examples/vllm-aggregated.yaml")
    .read_text(encoding="utf-8")
    .replace("name: vllm-aggregated", "name: chat\n  labels: {team: a}")
)
LARGER = CHAT.replace("type: worker\n      replicas: 1", "type: worker\n      replicas: 2")


FAST = """\
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: fast}
spec:
  storageClassName: fast
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
"""


def named(name: str, *changes: tuple[str, str]) -> str:
    """The graph `chat` with another name and a fault."""
    text = CHAT.replace("name: chat", f"name: {name}")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def with_volume(name: str) -> str:
    """The graph with a PVC of that name in its worker, beside the secret."""
    secret = "              envFrom:\n"
    mount = f"              volumeMounts: [{{name: weights, mountPath: /weights}}]\n{secret}"
    volume = f"          volumes: [{{name: weights, persistentVolumeClaim: {{claimName: {name}}}}}]\n"
    pod = "      podTemplate:\n        spec:\n"
    head, _, worker = named(name).partition(WORKER)
    return head + WORKER + worker.replace(pod, pod + volume).replace(secret, mount)


def in_pods(name: str, field: str) -> str:
    return named(name, (POD, POD.replace("          containers", f"          {field}\n          containers")))


FAULTS = (
    FAST,
    with_volume("fast"),
    with_volume("absent"),
    in_pods("account", "serviceAccountName: robot"),
    in_pods("selector", "nodeSelector: {gpu: h300}"),
    named("gpus", ('gpu: "1"', 'gpu: "16"')),
)
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata: {name: budget}
spec: {hard: {pods: "1"}}
"""
SETUP = (
    "dynamoctl dev up",
    "kubectl create ns night; kubectl create ns poor",
    "kubectl create secret -n night generic hf-token-secret --from-literal=HF_TOKEN=x",
    "kubectl create secret -n poor generic hf-token-secret --from-literal=HF_TOKEN=x",
    "kubectl apply -n poor -f quota.yaml",
    "kubectl apply -n poor -f chat.yaml",
    "kubectl apply -n night -f faults.yaml",
    "kubectl apply -f chat.yaml",
    "kubectl wait --for=condition=Ready dgd/chat --timeout=500s",
)
KILLED = (
    "import os; from devcluster.instance import Instance; os.kill(Instance('default').companion.pid(), 9)"
)


@dataclass(frozen=True, slots=True)
class Task:
    """A task, the first line that its person types, and what must and must not be in the output."""

    task: str
    line: str
    shows: str
    never: str = r"Traceback|Unused Tokens|Unknown command|denied destination"

    def tried(self, environment: dict[str, str], folder: Path) -> str:
        """The last output if the task failed, else nothing."""
        until = time.monotonic() + 90
        while True:
            done = subprocess.run(  # noqa: S603  lines of this file
                ["/bin/sh", "-c", self.line],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            is_wrong = re.search(self.never, done.stdout)
            if not is_wrong and re.search(self.shows, done.stdout, re.DOTALL):
                return ""
            if is_wrong or time.monotonic() > until:
                return f"exit {done.returncode}: {done.stdout}"
            time.sleep(1)


def python(program: str) -> str:
    return f"python -W error - <<'END'\nfrom dynamo_graphs import *\n{program}\nEND"


def attempt(line: str) -> str:
    return f"try: print({line})\nexcept Exception as error: print(error)"


BUILT = "g = Graph('chat').frontend().worker('decode', model='Qwen/Qwen3-8B', gpus=1)\n"
VOLUME = (
    "g = g.pvc('w', size='10Gi', storage_class='fast')\n"
    "g = g.service('decode', volume_mounts=[{'name': 'w', 'mount_point': '/w'}])\nprint(g.to_yaml())"
)
BRIEF = "with Graph('brief').frontend().temporary() as brief: print(brief.name)\n" + attempt(
    "Graph('brief').get()"
)

ENGINEER = (
    Task("one graph", "dynamoctl get chat", r"NAME.*\nchat "),
    Task("as kubectl names it", "dynamoctl get dgd chat", r"NAME.*\nchat "),
    Task("its YAML", "dynamoctl get dgd/chat -o yaml", r"kind: DynamoGraphDeployment"),
    Task("the namespace first", "dynamoctl -n default get", r"chat "),
    Task("as a plugin of kubectl", "kubectl dynamo -n default get dgd chat", r"chat "),
    Task("by a label", "dynamoctl get dgd -l team=a", r"chat "),
    Task("one field", "dynamoctl get dgd chat -o jsonpath='{.metadata.labels.team}'", r"^a\s*$"),
    Task("names for a loop", "dynamoctl get -o name", r"^dynamographdeployment\.nvidia\.com/chat"),
    Task("how it is", "dynamoctl status chat", r"(?i)ready"),
    Task(
        "describe",
        "dynamoctl describe chat",
        r"dynamoctl (status|tree|why) chat|kubectl describe dgd[ /]chat",
    ),
    Task("what an edit would change", "dynamoctl diff -f larger.yaml", r"replicas.*2"),
    Task("apply the edit", "dynamoctl apply -f larger.yaml --wait", r"chat.*ready"),
    Task(
        "and again with kubectl",
        "kubectl apply -f larger.yaml && dynamoctl diff -f larger.yaml",
        r"(?i)no change|unchanged",
    ),
    # On a busy machine the runtime may cut an answer, so a person asks again.
    Task("ask the model", "dynamoctl chat chat 'Hello'", r"\A(?!.*error).*\w", r"Traceback|denied"),
    Task("call its API", "dynamoctl curl chat /v1/models", r"Qwen/Qwen3-0\.6B", r"Traceback|denied"),
    Task("its logs", "dynamoctl logs chat --tail=20", r"\w", r"no such host|(?m:^error:)|HTTP 204"),
    Task("what it does", "dynamoctl top chat", r"chat +2/2 .*\d\.\d"),
    Task("check a folder", "dynamoctl lint manifests", r"-R"),
    Task("check what is below", "dynamoctl lint -R manifests", r"below/wrong\.yaml"),
    Task("restart", "dynamoctl restart chat", r"restart"),
    Task(
        "size a model",
        "dynamoctl profile --model Qwen/Qwen3-32B --gpu h200 --ttft 300 --itl 20",
        r"(?i)if .*exact",
        r"Sweeping",
    ),
    Task("a capital in a name", "dynamoctl new Chat_1 --model Qwen/Qwen3-8B", r"lower-case|lowercase|a-z"),
    Task("a wrong letter", "dynamoctl sttus chat", r"did you mean.*status"),
    Task("delete", "dynamoctl delete chat", r"kubectl delete (dgd|dynamographdeployment)[ /]chat"),
)
PYTHON = (
    Task(
        "apply what kubectl applied",
        python("print(Graph('chat').get().apply())"),
        r"\w",
        r"Conflict|Traceback|Warning",
    ),
    Task(
        "a typo in a service",
        python(BUILT + attempt("g.service('nope', replicas=3)")),
        r"nope.*decode",
        r"missing image",
    ),
    Task("too many GPUs", python(BUILT + attempt("g.service('decode', gpus=16).problems()")), r"nodes"),
    Task("a PVC in snake case", python(BUILT + VOLUME), r"storageClass\W+fast.*mountPath: /w"),
    Task("its Events", python("print(Graph('chat').get().events())"), r"\w"),
    Task("why, in a notebook", python("print(Graph('chat').get().why()._repr_html_())"), r"<\w+"),
    Task("a graph that goes away", python(BRIEF), r"brief.*not found"),
    Task("restart", python("print(Graph('chat').get().restart())"), r"\w"),
)
ON_CALL = (
    Task(
        "no such storage class",
        "dynamoctl why fast -n night",
        r"fast.*kubectl get (sc|storageclass)",
        r"Add nodes|free GPUs",
    ),
    Task("no such PVC", "dynamoctl why absent -n night", r"absent.*kubectl .*pvc", r"quota or webhook|NAME"),
    Task(
        "no such ServiceAccount",
        "dynamoctl why account -n night",
        r"robot.*kubectl create (sa|serviceaccount) robot",
        r"NAME",
    ),
    Task(
        "more GPUs than a node has", "dynamoctl why gpus -n night", r"\b8\b.*(multinode|nodes)", r"free GPUs"
    ),
    Task("no node has the label", "dynamoctl why selector -n night", r"h300|node selector", r"free GPUs"),
    Task("a quota", "dynamoctl why chat -n poor", r"budget.*kubectl .*(quota|resourcequota)", r"NAME"),
)
WITHOUT_OPERATOR = (
    Task("is the cluster well?", "dynamoctl check", r"\A[^\n]*\nfail +Operator: no operator leads"),
    Task("why does nothing happen?", "dynamoctl why chat", r"(?i)\A[^\n]*operator"),
)


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of a shell with the playground; afterwards it has an operator and no graphs."""
    kubeconfig = Path(os.environ["XDG_STATE_HOME"], CONTROL_PLANE, "default/kubeconfigs/admin.yaml")
    variables = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    yield variables
    shell("dynamoctl dev up; kubectl delete dgd --all --all-namespaces", variables, tmp_path)


def shell(line: str, environment: dict[str, str], folder: Path) -> None:
    done = subprocess.run(  # noqa: S603  lines of this file
        ["/bin/sh", "-euc", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, f"{line}\n{done.stdout}\n{done.stderr}"


def test_forty_tasks_at_the_first_guess(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "manifests/below").mkdir(parents=True)
    files = {
        "chat": CHAT,
        "larger": LARGER,
        "quota": QUOTA,
        "faults": "---\n".join(FAULTS),
        "manifests/chat": CHAT,
    }
    files["manifests/below/wrong"] = CHAT.replace("replicas", "replica")
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    for line in SETUP:
        shell(line, environment, tmp_path)
    failed = list[str]()

    def tried(*tasks: Task) -> None:
        for task in tasks:
            output = task.tried(environment, tmp_path)
            row = f"{'failed' if output else 'ok    '} {task.task}: {task.line.splitlines()[0]}"
            print(row)  # noqa: T201  for -rP
            if output:
                failed.append(f"{row}\n{output}")

    tried(*ENGINEER, *PYTHON, *ON_CALL)
    shell(f'python -c "{KILLED}"', environment, tmp_path)
    tried(*WITHOUT_OPERATOR)
    assert not failed, "\n".join(failed)
