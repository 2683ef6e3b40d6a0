"""What a cluster lacks is named, and what to do about it."""

import base64
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from dynamo_graphs.operators import Running
from dynamoctl.installation import checks
from dynamoctl.installation.checks import CheckResult, Finding, Project, StorageClass
from dynamoctl.installation.manifests import Choices, manifests
from kube_runtime.tls import new_authority
from kube_runtime.types import kinds
from kube_runtime.types.kinds import Definition, Lease, Node, Pod
from kube_runtime.types.meta import Key, Kind, Metadata, Object

OK, WARNING, FAIL = CheckResult
NOW = datetime(2026, 1, 1, 0, 2, tzinfo=UTC)
DEFAULT = {"storageclass.kubernetes.io/is-default-class": "true"}
A = Kind("x.io", "v1", "A", "as")
B = Kind("x.io", "v1", "B", "bs")


def storage(name: str, *, is_default: bool = False) -> StorageClass:
    return StorageClass(metadata=Metadata(name=name, annotations=DEFAULT if is_default else {}))


def node(gpus: str = "", *, is_labelled: bool = True) -> Node:
    labels = {"nvidia.com/gpu.present": "true"} if is_labelled else {}
    allocatable = {"nvidia.com/gpu": gpus} if gpus else {}
    return Node(metadata=Metadata(name="n", labels=labels), status=kinds.NodeStatus(allocatable=allocatable))


def gpu_operator(*phases: str, has_gpus: bool = False) -> Finding:
    pods = [Pod(metadata=Metadata(name="p"), status=kinds.PodStatus(phase=each)) for each in phases]
    return checks.gpu_operator(pods, has_gpus=has_gpus)


def definition(kind: Kind, *served: str, stored: tuple[str, ...] = ()) -> dict[str, Definition]:
    spec = kinds.DefinitionSpec(tuple(kinds.DefinedVersion(each, served=True) for each in served))
    metadata, status = Metadata(name=str(kind)), kinds.DefinitionStatus(stored)
    return {metadata.name: Definition(metadata=metadata, spec=spec, status=status)}


BOTH = definition(A, "v1") | definition(B, "v1")


def definitions(present: dict[str, Definition], *later: Kind, is_before: bool = False) -> Finding:
    return checks.definitions([A, B], present, later, is_before=is_before)


def project(present: dict[str, Definition], forbidden: dict[Kind, list[str]] | None = None) -> Finding:
    used = Project("P", (A, B), "used unless p.on is false", granted_by="p.on=true")
    [found] = checks.other_projects(present, [used], forbidden)
    return found


def authorities(*bundles: str) -> Finding:
    hooks = tuple(kinds.Webhook("v.kb.io", kinds.WebhookClient(ca_bundle=each)) for each in bundles)
    found = kinds.ValidatingWebhookConfiguration(Metadata(name="c"), webhooks=hooks)
    return checks.authorities([found], NOW)


def bundle(days: int) -> str:
    began = NOW - timedelta(days=100)
    authority = new_authority("a", now=began, life=timedelta(days=100 + days))
    return base64.b64encode(authority.pem).decode()


def lease(renewed: str | None, namespace: str = "n") -> Lease:
    spec = kinds.LeaseSpec("pod-1", lease_duration_seconds=15, renew_time=renewed)
    return Lease(metadata=Metadata(name="l", namespace=namespace), spec=spec)


HELD, LOST = "2026-01-01T00:01:55.000000Z", "2026-01-01T00:01:40.000000Z"


def leader(found: Lease | None, *alone: Running, is_before: bool = False) -> Finding:
    return checks.leader(found, alone, NOW, is_before=is_before)


def absent(
    found: Lease | None,
    *running: Running,
    own: Sequence[str] = (),
    waiting: Sequence[str] = (),
    reconciled: int = 0,
) -> Finding:
    return checks.absent(found, running, NOW, own=own, waiting=waiting, reconciled=reconciled)


def operator(number: int = 0, *, ready: int = 1, elects: bool = False, namespace: str = "") -> Running:
    account, deployment = Key("dynamo-system", f"operator-{number}"), Key("dynamo-system", "manager")
    return Running(deployment, account, namespace, elects, ready)


def own_operators(**renewed: str) -> Finding:
    return checks.own_operators([lease(time, name) for name, time in renewed.items()], NOW)


def quota(*used: str) -> Finding:
    gpu = "requests.nvidia.com/gpu"
    statuses = (checks.QuotaStatus({gpu: "8"}, {gpu: each}) for each in used)
    return checks.quota([checks.ResourceQuota(Metadata(name="q"), status=each) for each in statuses])


def pull_secrets(*images: str) -> Finding:
    return checks.pull_secrets(images, {"reg.example.com:5000"})


ELECT = "start it with --leader-elect"
OURS = "reg.example.com:5000/a:1"


@pytest.mark.parametrize(
    ("found", "verdict", "text", "remedy"),
    [
        (checks.default_storage([]), WARNING, "no StorageClass found", "install a storage provisioner"),
        (checks.default_storage([storage("b"), storage("a")]), WARNING, "none of a, b", "kubectl patch"),
        (checks.default_storage([storage("a", is_default=True), storage("b")]), OK, "a", ""),
        (checks.default_storage([storage("a", is_default=True)] * 2), WARNING, "several: a, a", "remove"),
        (checks.gpus([]), FAIL, "no node reports GPUs", "install the NVIDIA GPU operator"),
        (checks.gpus([node("8", is_labelled=False)]), FAIL, "no node reports GPUs", "install"),
        (checks.gpus([node("8"), node("4"), node()]), OK, "12 GPUs on 3 nodes", ""),
        (gpu_operator(), FAIL, "no pods found with app=gpu-operator", "install"),
        (gpu_operator("Pending", "Failed"), FAIL, "0 of 2 pods run", "install"),
        (gpu_operator(has_gpus=True), WARNING, "but nodes report GPUs", "only needed if drivers"),
        (gpu_operator("Running", "Pending"), WARNING, "1 of 2 pods run", "kubectl get pods"),
        (gpu_operator("Running", "Running"), OK, "2 of 2 pods run", ""),
        (checks.kubernetes_version("v1.36.3"), OK, "v1.36.3", ""),
        (checks.kubernetes_version("v1.27.0-eks-1"), OK, "v1.27.0-eks-1", ""),
        (checks.kubernetes_version("v1.26.9"), FAIL, "v1.26.9 is too old", "use 1.27 or newer"),
        (definitions({}, is_before=True), OK, "none is installed yet", ""),
        (definitions({}), FAIL, "missing: as.x.io, bs.x.io", "helm upgrade --install dynamo-crds"),
        (
            definitions(definition(A, "v1"), is_before=True),
            FAIL,
            "missing: bs.x.io",
            "dynamoctl install crds",
        ),
        (definitions(BOTH), OK, "all 2 are installed", ""),
        (
            definitions(BOTH | definition(A, "v2")),
            FAIL,
            "not served in v1: as.x.io",
            "dynamoctl install crds",
        ),
        (definitions(BOTH | definition(A, "v1beta1"), A), OK, "all 2 are installed", ""),
        (
            definitions(BOTH | definition(A, "v1beta1"), B),
            *(FAIL, "not served in v1: as.x.io", "dynamoctl install crds"),
        ),
        (
            definitions(BOTH | definition(A, "v1", stored=("v1alpha1", "v1"))),
            *(WARNING, "no longer defined: as.x.io in v1alpha1", "migrating stored versions"),
        ),
        (project(BOTH), OK, "installed; used unless p.on is false", ""),
        (project(definition(A, "v1")), WARNING, "partly installed; missing: bs.x.io", "if it is complete"),
        (project(BOTH | definition(B, "v2")), WARNING, "bs.x.io is not served in v1", "install a P version"),
        (project(BOTH, {}), OK, "installed, and the operator may use it", ""),
        (project(BOTH, {B: ["ns/operator"]}), WARNING, "ns/operator may not read bs.x.io", "p.on=true"),
        (authorities(bundle(30)), OK, "the first expires on 2026-01-31", ""),
        (authorities(bundle(30), bundle(3)), WARNING, "expires on 2026-01-04", "is running"),
        (authorities(bundle(-1)), FAIL, "expires on 2025-12-31", "is running"),
        (authorities(), OK, "no Dynamo webhook is registered", ""),
        (authorities(""), FAIL, "c/v.kb.io has no caBundle", "see the log of the operator"),
        (authorities("bm8="), FAIL, "has a caBundle that is not PEM", "see the log of the operator"),
        (checks.admission("failed calling webhook: x509", is_expected=False), FAIL, "x509", "is ready"),
        (checks.admission("webhook denied the request: …", is_expected=True), OK, "trusts them", ""),
        (checks.admission("", is_expected=True), FAIL, "no webhook refused", "is registered"),
        (checks.admission("", is_expected=False), OK, "no webhooks", ""),
        (checks.admission("forbidden", is_expected=True), WARNING, "the check failed: forbidden", ""),
        (leader(None, is_before=True), OK, "no operator leads", ""),
        (leader(lease(HELD), is_before=True), WARNING, "pod-1 leads, by Lease n/l", "upgrade that release"),
        (leader(lease(HELD)), OK, "pod-1 leads, by Lease n/l", ""),
        (leader(lease(LOST), is_before=True), OK, "no operator leads; pod-1 has not renewed its Lease", ""),
        (leader(None, operator(), is_before=True), WARNING, "dynamo-system/operator-0 runs", ELECT),
        (absent(lease(LOST)), FAIL, "since 2026-01-01T00:01:40Z (20 seconds)", "dynamoctl dev up"),
        (
            absent(lease("0000-01-01T00:00:00.000000Z")),
            FAIL,
            "pod-1 has not renewed its Lease n/l",
            "get pods",
        ),
        (absent(lease(None)), FAIL, "pod-1 has not renewed its Lease n/l", "kubectl get pods -A"),
        (absent(None), FAIL, "no Lease kube-system/dynamo.nvidia.com and no Deployment", "install --print"),
        (absent(None, waiting=["p/chat"]), FAIL, "1 graph not reconciled: p/chat", "install --print"),
        (
            absent(lease(LOST), waiting=list("abcdef")),
            FAIL,
            "6 graphs not reconciled: a, b, c, d, e and 1",
            "l",
        ),
        (absent(None, reconciled=2), WARNING, "2 graphs reconciled", "start it with --leader-elect"),
        (absent(None, own=["b", "a"]), OK, "namespaces with their own: a, b", ""),
        (absent(None, own=["b"], waiting=["p/chat"]), FAIL, "p/chat", "install --print"),
        (
            absent(lease(LOST), operator(elects=True, ready=0)),
            *(
                FAIL,
                "Deployment dynamo-system/manager has 0 ready pods",
                "kubectl describe pods -n dynamo-system",
            ),
        ),
        (absent(None, operator()), OK, "dynamo-system/operator-0 runs without leader", ""),
        (absent(None, operator(ready=0)), FAIL, "has 0 ready pods", "kubectl describe pods"),
        (
            absent(None, operator(), operator(1)),
            *(WARNING, "operator-0, dynamo-system/operator-1 runs", ELECT),
        ),
        (own_operators(), OK, "none", ""),
        (own_operators(a=LOST), OK, "none; until its Lease expired also a", ""),
        (own_operators(a=LOST, b=HELD), OK, "b; until its Lease expired also a", ""),
        (quota(), OK, "no quota found", ""),
        (quota("3"), OK, "q/requests.nvidia.com/gpu: 5 left", ""),
        (quota("8"), WARNING, "exhausted: q/requests.nvidia.com/gpu", "kubectl describe resourcequota"),
        (pull_secrets(OURS), OK, "found for reg.example.com:5000", ""),
        (pull_secrets(OURS, "python:3.12"), WARNING, "missing for docker.io (as in python:3.12)", "public"),
        (
            checks.graphs_in_closed({"platform": ["chat"], "kube-system": []}, is_before=False),
            *(WARNING, "platform/chat: the operator does not change them", "releaseNamespace=false"),
        ),
        (
            checks.graphs_in_closed({"platform": ["chat"]}, is_before=True),
            *(WARNING, "after the upgrade their pods keep running", "releaseNamespace=false"),
        ),
        (checks.graphs_in_closed({"platform": []}, is_before=False), OK, "none", ""),
    ],
    ids=lambda value: f"{value.name}: {value.text}" if isinstance(value, Finding) else "",
)
def test_a_finding_has_its_verdict_and_its_remedy(
    found: Finding, verdict: CheckResult, text: str, remedy: str
) -> None:
    assert (verdict, bool(remedy)) == (found.verdict, bool(found.remedy))
    assert text in found.text
    assert remedy in found.remedy


def test_a_project_that_is_not_installed_is_not_reported() -> None:
    assert [] == checks.other_projects({}, [Project("P", (A, B), "set p.on")])


def test_the_remedy_for_no_default_class_can_be_pasted() -> None:
    remedy = checks.default_storage([storage("fast")]).remedy
    assert remedy.startswith("kubectl patch storageclass fast -p ")
    patch = json.loads(remedy.partition(" -p ")[2].strip("'"))
    assert DEFAULT == patch["metadata"]["annotations"]


def test_the_summary_counts_a_warning_as_passed() -> None:
    found = [Finding("a", OK, ""), Finding("b", WARNING, "")]
    assert "Summary: 2 passed, 0 failed" == checks.summary(found)
    assert checks.headline(found).startswith("No check failed")
    assert "Summary: 2 passed, 1 failed" == checks.summary([*found, Finding("c", FAIL, "")])


def test_the_closed_namespaces_are_those_of_the_installed_policy() -> None:
    policies = [it for it in manifests(Choices("platform")) if it["kind"] == "ValidatingAdmissionPolicy"]
    closed = {"kube-node-lease", "kube-public", "kube-system", "platform"}
    assert closed == checks.closed_namespaces(policies)


def a_set(status: object = None, **fields: Any) -> Object:
    metadata = {"name": "chat", "namespace": "prod", "creationTimestamp": "2026-01-01T00:00:00Z", **fields}
    return {"kind": "PodCliqueSet", "metadata": metadata, "status": status}


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        (
            [a_set(), a_set(name="other")],
            "no controller has observed PodCliqueSet prod/chat and 1 other object",
        ),
        ([a_set({"observedGeneration": 1})], None),
        ([a_set(creationTimestamp="2026-01-01T00:01:30Z")], None),
        ([a_set(creationTimestamp="now")], None),
    ],
)
def test_objects_that_no_controller_observes_are_reported(objects: list[Object], text: str | None) -> None:
    finding = checks.unobserved("Grove", objects, NOW)
    assert text == (finding and finding.text)
    assert finding is None or "check that the controller of Grove runs" in finding.remedy
