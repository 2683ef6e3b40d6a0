"""Texts of `dynamoctl why`: causes, since when, and what to do, in the words of the condition table."""

from typing import Any

import msgspec
import pytest

from dynamo_graphs.advice import Evidence
from dynamo_graphs.catalog import MEANINGS, meaning
from dynamo_graphs.explanation import Explanation, changed_at, explanation
from dynamo_graphs.leadership import REMEDY
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import Stated
from kube_runtime.types.meta import Condition
from stated import NOW, READY, THEN, a_component, a_condition, a_graph, a_pod, late, metadata

SINCE = f"since {THEN} (12 minutes)"


def told(stated: Stated, changed: str | None = None) -> Explanation:
    return explanation(stated, now=NOW, changed_at=changed)


def text(found: Explanation) -> str:
    return "\n".join((*found.findings, *found.advice))


def advice(reason: str, condition: str = "Ready", status: str = "False") -> str:
    row = meaning("DynamoGraphDeployment", Condition(condition, status, reason))
    assert row is not None
    return row.advice


def of_chat(remedy: str) -> str:
    """A remedy with the name of the graph."""
    return remedy.replace("events NAME", "events chat -n prod")


def unready(reason: str, message: str = "", **fields: Any) -> dict[str, Any]:
    return a_condition("Ready", "False", reason, message, **fields)


def test_a_ready_graph_needs_one_sentence_whatever_is_over() -> None:
    warned = a_condition("ConfigurationWarning", "False", "no_warning", "fine")
    resumed = a_condition("Suspended", "False", "resumed")
    for conditions in ((READY,), (READY, warned), (READY, resumed)):
        assert Explanation((f"prod/chat has been ready {SINCE}.",)) == told(a_graph(*conditions))


def test_an_unschedulable_pod_has_the_message_of_the_scheduler() -> None:
    pod = a_pod("Unschedulable", "0/3 nodes: no nvidia.com/gpu", container=None, since=THEN)
    services = {"w": late("insufficient_capacity", pod, {**pod, "name": "chat-w-1"})}
    found = told(a_graph(unready("insufficient_capacity"), services=services))
    assert "pod chat-w-0: Unschedulable" in found.findings[0]
    assert found.findings[0].endswith("0/3 nodes: no nvidia.com/gpu (and 1 more such pods)")
    assert (advice("insufficient_capacity"),) == found.advice


@pytest.mark.parametrize(
    "pod",
    [
        a_pod("Unschedulable", "0/3 nodes: 3 Insufficient nvidia.com/gpu", container=None),
        a_pod("ContainerCreating", "it has been waiting"),
        a_pod("ContainersNotReady", "the node has not started it yet", container=None),
    ],
)
def test_a_pod_without_a_log_is_not_followed_by_its_log(pod: dict[str, Any]) -> None:
    services = {"w": late("pods_not_ready", pod)}
    [advice] = told(a_graph(unready("pods_not_ready"), services=services)).advice
    assert "logs" not in advice
    assert "model" not in advice
    is_unscheduled = pod["reason"] == "Unschedulable"
    assert ("scale one down" if is_unscheduled else "describe pod chat-w-0 -n prod") in advice


def test_of_several_reasons_each_has_its_own_advice() -> None:
    services = {
        "a": late("pods_crashing", a_pod("OOMKilled", restarts=3)),
        "b": late("image_pull_failed", a_pod("ImagePullBackOff")),
        "c": late("image_pull_failed", a_pod("ImagePullBackOff")),
    }
    found = told(a_graph(unready("mixed_not_ready_reasons", "a | b | c"), services=services))
    assert "restarted 3 times" in text(found)
    assert "a | b | c" not in text(found)
    assert [("b", "c"), ("a",)] == [cause.services for cause in found.causes]
    assert "kubectl describe pod chat-w-0 -n prod" in found.causes[0].remedies[0]
    assert "resources.limits.memory" in found.causes[1].remedies[0]


def test_a_cause_comes_first_and_what_the_catalog_says_in_general_is_left_out() -> None:
    services = {"w": late("config_error", a_pod("CreateContainerConfigError", 'secret "keys" not found'))}
    stated = a_graph(unready("config_error", "x"), services=services)
    found = told(stated)
    cause, remedy, standing, *rest = found.lines
    assert "w: The Secret keys does not exist in namespace prod." == cause
    assert remedy.startswith("→ Create it, `kubectl create secret generic keys -n prod")
    assert "prod/chat has not been ready" in standing
    assert "Ready is False, config_error." in rest
    assert not any(advice("config_error") in line for line in rest)


def test_evidence_that_is_more_specific_than_the_status_replaces_its_cause() -> None:
    pod = a_pod("Unschedulable", "pod has unbound immediate PersistentVolumeClaims", container=None)
    stated = a_graph(unready("insufficient_capacity"), services={"w": late("insufficient_capacity", pod)})
    assert "waits for a PVC" in told(stated).findings[0]
    missing = 'storageclass.storage.k8s.io "fast" not found'
    evidence = Evidence("ProvisioningFailed", missing, "w", {"pvc": "weights"})
    found = explanation(stated, now=NOW, evidence=[evidence])
    assert "w: The PVC weights is Pending: the StorageClass fast does not exist." == found.findings[0]
    assert "Add nodes" not in text(found)


def test_pods_of_an_older_spec_do_not_count() -> None:
    old = late("image_pull_failed", a_pod("ImagePullBackOff"))
    services = {"w": {**old, "replicas": 2, "readyReplicas": 1}}
    found = told(a_graph(unready("image_pull_failed"), services=services))
    assert "0 of 1 replicas of the newest spec" in text(found)


def test_validation_errors_have_the_messages_of_the_operator() -> None:
    message = "spec.services.w.replicas: is negative"
    conditions = (
        unready("ValidationFailed", message),
        a_condition("Progressing", "False", "ValidationFailed", message),
    )
    found = told(a_graph(*conditions))
    assert 1 == text(found).count(message)
    assert ("Correct the graph.",) == found.advice


def test_a_refused_spec_is_not_explained_by_services_from_before() -> None:
    services = {"w": late("image_pull_failed", a_pod("ImagePullBackOff"))}
    refused = unready("ValidationFailed", "spec.x: is wrong", generation=2)
    found = told(a_graph(refused, services=services, generation=2))
    assert "The operator reports: spec.x: is wrong" in found.findings
    assert "ImagePullBackOff" not in text(found)
    assert "reconciled" not in text(found)


def test_a_service_with_an_unknown_cause_is_explained_beside_the_others() -> None:
    services = {
        "a": late("image_pull_failed", a_pod("ImagePullBackOff")),
        "b": late("", message="chat-b: it does not exist yet"),
    }
    found = told(a_graph(unready("image_pull_failed"), services=services))
    assert found.findings[-1].endswith("ready; chat-b: it does not exist yet")
    assert f"b: {of_chat(advice('some_resources_are_not_ready'))}" in found.advice


def test_a_graph_whose_causes_are_unknown_has_its_message() -> None:
    services = {"w": late("", message="chat-w: it does not exist yet")}
    said = unready("some_resources_are_not_ready", "Resources not ready: chat-w")
    found = told(a_graph(said, services=services))
    assert "The operator reports: Resources not ready: chat-w" in found.findings
    assert (of_chat(advice("some_resources_are_not_ready")),) == found.advice


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_paused_graph(is_seen: bool) -> None:
    seen = (a_condition("Progressing", "Unknown", "paused"),) if is_seen else ()
    paused = a_graph(READY, *seen, annotations={"nvidia.com/paused": "true"})
    found = told(paused)
    assert "has been ready" in found.findings[0]
    assert "`nvidia.com/paused` is `true`: the operator writes nothing" in found.findings[1]
    broken = a_graph(unready("pods_crashing"), annotations={"nvidia.com/paused": "true"})
    remedy = advice("paused", "Progressing", "Unknown").replace("NAME", "chat -n prod")
    assert remedy == told(broken).advice[0]


def test_a_paused_adapter_says_so_once() -> None:
    said = a_condition("Ready", "Unknown", "paused")
    fields = metadata(annotations={"nvidia.com/paused": "true"})
    body = {"metadata": fields, "status": {"conditions": [said], "observedGeneration": 1}}
    found = told(msgspec.convert(body, DynamoGraphDeploymentScalingAdapter))
    assert 2 == len(found.findings)
    assert 1 == len(found.advice)


def test_a_configuration_warning_is_part_of_the_explanation() -> None:
    warned = a_condition("ConfigurationWarning", "True", "will_not_work_as_written", "w: no args")
    found = told(a_graph(unready("pods_crashing", "w crashes"), warned))
    assert "w: no args" in text(found)
    assert advice("will_not_work_as_written", "ConfigurationWarning", "True") in found.advice


@pytest.mark.parametrize(
    ("finalizers", "words"),
    [
        ([], "No finalizer blocks the deletion."),
        (["example.com/hold"], "example.com/hold"),
        (["foregroundDeletion"], "dynamoctl tree"),
        (["nvidia.com/finalizer"], "dynamoctl check"),
    ],
)
def test_an_object_that_is_being_deleted(finalizers: list[str], words: str) -> None:
    going = a_graph(READY, deletionTimestamp=THEN, generation=2, finalizers=finalizers)
    found = told(going)
    assert f"prod/chat is being deleted {SINCE}." == found.findings[0]
    assert words in text(found)


def test_no_status_yet_is_no_fault_within_a_minute() -> None:
    young = told(a_graph(creationTimestamp="2026-01-01T00:11:58Z"))
    assert "(2 seconds ago), but no operator has reconciled it yet" in text(young)
    assert young.advice[0].startswith("Repeat in a minute")
    old = told(a_graph())
    assert "(12 minutes ago)" in text(old)
    assert old.advice[0].startswith("Run `dynamoctl check`")


def test_a_spec_that_is_not_reconciled_yet_is_reported() -> None:
    edited = a_graph(READY, generation=2)
    found = told(edited, "2026-01-01T00:11:50Z")
    assert "prod/chat is not ready." == found.findings[1]
    assert (
        "No operator has reconciled its newest spec (generation 2) yet; the status describes generation 1"
    ) in text(found)
    assert found.advice[0].startswith("Repeat in a minute")
    assert told(edited, THEN).advice[0].startswith("Run `dynamoctl check`")
    assert "12 minutes ago" in text(told(edited, THEN))


@pytest.mark.parametrize("observed", [1, 2])
def test_that_no_operator_runs_comes_first_also_of_a_ready_graph(observed: int) -> None:
    stated = a_graph(READY, generation=observed)
    explained = explanation(stated, now=NOW, changed_at=THEN, gone="No operator runs: it is gone.")
    assert "No operator runs: it is gone." == explained.findings[0]
    assert [REMEDY] == list(explained.advice)


def test_a_reason_that_this_version_does_not_know() -> None:
    found = told(a_graph(unready("solar_flare", "the sun")))
    assert {"Ready is False: solar_flare.", "The operator reports: the sun"} <= set(found.findings)
    assert "Unknown reason solar_flare" in found.advice[0]
    services = {"w": late("solar_flare", a_pod("Sun"))}
    assert "solar_flare" in told(a_graph(unready("solar_flare"), services=services)).advice[0]


def test_a_component_has_the_advice_of_its_pods() -> None:
    available = a_condition("Available", "False", "DeploymentNotReady", "Deployment is not ready")
    same = {**available, "type": "DynamoComponentReady"}
    pod = a_pod("CrashLoopBackOff", "exit code 1")
    found = told(a_component(available, same, service=late("pods_crashing", pod)))
    assert "w: Container main of pod chat-w-0 keeps exiting." == found.findings[0]
    assert "prod/chat-w has not been ready" in found.findings[1]
    assert 1 == text(found).count("DeploymentNotReady")
    assert "exit code 1" in found.findings[-1]
    assert ("`kubectl logs chat-w-0 -n prod -c main --previous` has its whole output.",) == found.advice


def test_a_component_with_validation_errors_lists_them() -> None:
    conditions = (
        a_condition("Available", "False", "ValidationFailed", "see Valid"),
        a_condition("Valid", "False", "ValidationFailed", "spec.x: is wrong"),
    )
    assert "spec.x: is wrong" in text(told(a_component(*conditions)))
    assert "See `Valid`" not in text(told(a_component(*conditions)))


def test_links_of_the_table_lead_into_the_docs() -> None:
    said = a_condition("EndpointsReady", "False", "NoReadyEndpoints", "pod a: no route")
    body = {"metadata": metadata(), "status": {"conditions": [said]}}
    found = text(told(msgspec.convert(body, DynamoModel)))
    assert "docs/models.md#troubleshooting" in found
    assert "](" not in found


def test_a_failed_request_reports_the_step_that_failed() -> None:
    conditions = [
        a_condition("Profiling", "False", "ProfilingFailed", "pod x: exit code 1"),
        a_condition("Succeeded", "False", "ProfilingFailed", "pod x: exit code 1"),
    ]
    body = {"metadata": metadata(generation=3), "status": {"conditions": conditions}}
    found = told(msgspec.convert(body, DynamoGraphDeploymentRequest))
    assert "The operator reports: pod x: exit code 1" == found.findings[0]
    assert "prod/chat has not been ready" in found.findings[1]
    assert 1 == text(found).count("pod x: exit code 1")
    assert "the profiler or the copier failed" in text(found).lower()


def test_every_row_of_the_table_is_found() -> None:
    for row in MEANINGS:
        for type_ in row.condition.split(", "):
            assert row == meaning(row.kind, Condition(type_, row.status, row.reason))


def test_when_the_spec_was_changed_is_when_anything_but_the_status_was() -> None:
    entries = [
        {"manager": "kubectl", "time": "2026-01-01T00:00:00Z"},
        {"manager": "argocd", "time": "2026-01-02T00:00:00Z"},
        {"manager": "dynamo", "time": "2026-01-03T00:00:00Z", "subresource": "status"},
        {"manager": "nobody"},
    ]
    assert "2026-01-02T00:00:00Z" == changed_at({"metadata": {"managedFields": entries}})
    assert changed_at({}) is None
