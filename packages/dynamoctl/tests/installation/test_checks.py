"""What a cluster lacks is named, and what to do about it."""

import json
from pathlib import Path

import pytest

from dynamoctl.installation import checks
from dynamoctl.installation.checks import CheckResult, Finding, StorageClass
from dynamoctl.main import app
from kube_runtime.types.kinds import Node, NodeStatus, Pod, PodStatus
from kube_runtime.types.meta import Metadata

DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def storage(name: str, *, is_default: bool = False) -> StorageClass:
    return StorageClass(metadata=Metadata(name=name, annotations=DEFAULT if is_default else {}))


def node(gpus: str = "", *, is_labelled: bool = True) -> Node:
    labels = {"nvidia.com/gpu.present": "true"} if is_labelled else {}
    allocatable = {"nvidia.com/gpu": gpus} if gpus else {}
    return Node(
        metadata=Metadata(name="n", labels=labels), status=NodeStatus(allocatable=allocatable)
    )


def pods(*phases: str) -> list[Pod]:
    return [Pod(metadata=Metadata(name="p"), status=PodStatus(phase=each)) for each in phases]


@pytest.mark.parametrize(
    ("classes", "verdict", "words"),
    [
        ([], CheckResult.FAIL, "no StorageClass found"),
        ([storage("b"), storage("a")], CheckResult.FAIL, "none of a, b"),
        ([storage("a", is_default=True), storage("b")], CheckResult.OK, "a"),
        (
            [storage("a", is_default=True), storage("b", is_default=True)],
            CheckResult.WARNING,
            "there are several: a, b",
        ),
    ],
)
def test_there_must_be_one_default_class(
    classes: list[StorageClass], verdict: CheckResult, words: str
) -> None:
    found = checks.default_storage(classes)
    assert (verdict, words) == (found.verdict, found.text)


def test_the_remedy_for_no_default_class_can_be_pasted() -> None:
    remedy = checks.default_storage([storage("fast")]).remedy
    assert remedy.startswith("kubectl patch storageclass fast -p ")
    patch = json.loads(remedy.partition(" -p ")[2].strip("'"))
    assert DEFAULT == patch["metadata"]["annotations"]


@pytest.mark.parametrize(
    ("nodes", "verdict", "words"),
    [
        ([], CheckResult.FAIL, "no node reports GPUs"),
        ([node("8", is_labelled=False)], CheckResult.FAIL, "no node reports GPUs"),
        ([node("8"), node("4"), node()], CheckResult.OK, "12 GPUs on 3 nodes"),
    ],
)
def test_gpus_are_counted_on_nodes_that_are_labelled(
    nodes: list[Node], verdict: CheckResult, words: str
) -> None:
    found = checks.gpus(nodes)
    assert (verdict, words) == (found.verdict, found.text)


@pytest.mark.parametrize(
    ("phases", "verdict"),
    [
        ((), CheckResult.FAIL),
        (("Pending", "Failed"), CheckResult.FAIL),
        (("Running", "Pending"), CheckResult.WARNING),
        (("Running", "Running"), CheckResult.OK),
    ],
)
def test_a_gpu_operator_that_partly_runs_is_a_warning(
    phases: tuple[str, ...], verdict: CheckResult
) -> None:
    assert verdict == checks.gpu_operator(pods(*phases)).verdict


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("v1.36.3", CheckResult.OK), ("v1.27.0-eks-1", CheckResult.OK), ("v1.26.9", CheckResult.FAIL)],
)
def test_an_old_api_server_is_refused(version: str, verdict: CheckResult) -> None:
    assert verdict == checks.kubernetes_version(version).verdict


def test_the_summary_counts_a_warning_as_passed() -> None:
    found = [Finding("a", CheckResult.OK, ""), Finding("b", CheckResult.WARNING, "")]
    assert "Summary: 2 passed, 0 failed" == checks.summary(found)
    assert checks.headline(found).startswith("No check failed")
    assert "Summary: 2 passed, 1 failed" == checks.summary(
        [*found, Finding("c", CheckResult.FAIL, "")]
    )


def test_a_cluster_that_does_not_answer_fails_all_four(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                "users": [{"name": "c", "user": {}}],
            }
        ),
        encoding="utf-8",
    )
    assert 3 == app()(["check", "--kubeconfig", str(kubeconfig)])
    printed = capsys.readouterr().out
    for name in ("kubectl Connectivity", "Default StorageClass", "GPU Operator"):
        assert f"fail     {name}: " in printed
    assert printed.endswith("Summary: 0 passed, 4 failed\n")
