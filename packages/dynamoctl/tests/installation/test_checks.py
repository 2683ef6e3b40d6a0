"""What a cluster lacks is named, and what to do about it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from dynamoctl.installation import checks
from dynamoctl.installation.checks import (
    CheckResult,
    Finding,
    StorageClass,
    closed_namespaces,
    graphs_in_closed,
    leader,
    unobserved,
    without_election,
)
from dynamoctl.installation.manifests import Choices, manifests
from dynamoctl.main import app
from kube_runtime.types.kinds import Lease, LeaseSpec, Node, NodeStatus, Pod, PodStatus
from kube_runtime.types.meta import Key, Metadata, Object

DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}


def storage(name: str, *, is_default: bool = False) -> StorageClass:
    return StorageClass(metadata=Metadata(name=name, annotations=DEFAULT if is_default else {}))


def node(gpus: str = "", *, is_labelled: bool = True) -> Node:
    labels = {"nvidia.com/gpu.present": "true"} if is_labelled else {}
    allocatable = {"nvidia.com/gpu": gpus} if gpus else {}
    return Node(metadata=Metadata(name="n", labels=labels), status=NodeStatus(allocatable=allocatable))


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
def test_a_gpu_operator_that_partly_runs_is_a_warning(phases: tuple[str, ...], verdict: CheckResult) -> None:
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
    assert "Summary: 2 passed, 1 failed" == checks.summary([*found, Finding("c", CheckResult.FAIL, "")])


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


NOW = datetime(2026, 1, 1, 0, 2, tzinfo=UTC)


def a_set(**fields: Any) -> Object:
    metadata = {"name": "chat", "namespace": "prod", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {"kind": "PodCliqueSet", "metadata": {**metadata, **fields.pop("metadata", {})}, **fields}


def test_the_closed_namespaces_are_those_of_the_installed_policy() -> None:
    policies = [
        body for body in manifests(Choices("platform")) if body["kind"] == "ValidatingAdmissionPolicy"
    ]
    closed = {"kube-node-lease", "kube-public", "kube-system", "platform"}
    assert closed == closed_namespaces(policies)


def test_a_graph_in_a_closed_namespace_is_named_with_the_remedy() -> None:
    finding = graphs_in_closed({"platform": ["chat"], "kube-system": []}, is_before=False)
    assert CheckResult.WARNING is finding.verdict
    assert "platform/chat: the operator does not change them" == finding.text
    assert "namespacePolicy.releaseNamespace=false" in finding.remedy
    before = graphs_in_closed({"platform": ["chat"]}, is_before=True)
    assert "after the upgrade their pods keep running" in before.text
    assert CheckResult.OK is graphs_in_closed({"platform": []}, is_before=False).verdict


def test_objects_that_no_controller_observes_are_reported() -> None:
    finding = unobserved("Grove", [a_set(), a_set(metadata={"name": "other"})], NOW)
    assert finding is not None
    assert "no controller has observed PodCliqueSet prod/chat and 1 other object" == finding.text
    assert "check that the controller of Grove runs" in finding.remedy


@pytest.mark.parametrize(
    "body",
    [
        a_set(status={"observedGeneration": 1}),
        a_set(metadata={"creationTimestamp": "2026-01-01T00:01:30Z"}),
        a_set(metadata={"creationTimestamp": "now"}),
    ],
)
def test_an_observed_or_a_new_object_is_not_reported(body: Object) -> None:
    assert unobserved("Grove", [body], NOW) is None


NOW_LEADERS = datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("renewed", "said"),
    [
        ("2026-01-01T00:00:00.000000Z", "leads, by Lease"),
        ("2025-12-31T23:59:50.000000Z", "until its Lease expired"),
        ("0000-01-01T00:00:00.000000Z", "until its Lease expired"),
        (None, "until its Lease expired"),
    ],
)
def test_a_holder_leads_while_its_lease_lasts(renewed: str | None, said: str) -> None:
    spec = LeaseSpec(holder_identity="pod-1", lease_duration_seconds=15, renew_time=renewed)
    lease = Lease(Metadata("dynamo.nvidia.com", "kube-system"), spec=spec)
    assert said in leader(lease, NOW_LEADERS, is_before=False).text


@pytest.mark.parametrize(
    ("count", "is_before", "result"),
    [(1, False, CheckResult.OK), (1, True, CheckResult.WARNING), (2, False, CheckResult.WARNING)],
)
def test_an_operator_without_election_is_not_no_operator(
    count: int, is_before: bool, result: CheckResult
) -> None:
    accounts = [Key("dynamo-system", f"operator-{number}") for number in range(count)]
    found = without_election(accounts, is_before=is_before)
    assert result is found.verdict
    assert found.text.startswith("dynamo-system/operator-0")
    assert ("--leader-elect" in found.remedy) is (result is CheckResult.WARNING)
