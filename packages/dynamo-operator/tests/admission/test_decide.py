"""Decisions on objects, and which problems an update may keep."""

import tracemalloc
from typing import Any

import msgspec
import pytest

from dynamo_operator.admission.decide import ReviewContext, decide, scalars_at
from dynamo_operator.graph.warnings import ClusterContext
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object
from reviews.asking import SETTINGS, rules_of, verdict
from reviews.rows import ROWS, Row, adapted, document, graph, model, profiling, request, with_service, worker

BAD = with_service(ingress={"enabled": True})
HOST = "spec.services[w].ingress.host is required when ingress is enabled"


def labelled(of: Object, **metadata: Any) -> Object:
    return {**of, "metadata": {**of["metadata"], **metadata}}


def with_status(of: Object, **status: Any) -> Object:
    return {**of, "status": status}


def rolling(of: Object, phase: str | None) -> Object:
    return with_status(of, rollingUpdate={"phase": phase})


def test_an_object_that_was_wrong_before_may_be_labelled_whatever_its_status_holds() -> None:
    reserved = {"batch.kubernetes.io/" + "x" * 900: ""}
    wrong = request(profilingConfig={**profiling(), "labels": reserved})
    stored = with_status(wrong, **{"b" * 800: [1] * 100_000})
    assert not verdict(wrong).allowed
    tracemalloc.start()
    found = verdict(labelled(wrong, labels={"team": "a"}), stored)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.allowed
    assert found.warnings[0].endswith("(as before)")
    assert peak < 10_000_000


def test_an_update_is_refused_for_what_it_makes_wrong_only() -> None:
    worse = with_service(ingress={"enabled": True}, sharedMemory={})
    found = verdict(worse, BAD)
    size = "spec.services[w].sharedMemory.size is required when disabled is false"
    assert size == "\n".join(map(str, found.problems))
    assert (f"{HOST} (as before)",) == found.warnings


@pytest.mark.parametrize(
    ("new", "old"),
    [
        pytest.param(BAD, with_service(ingress={"enabled": True}, sharedMemory={}), id="half a repair"),
        pytest.param(labelled(BAD, deletionTimestamp="2026-01-01T00:00:00Z"), graph(), id="being deleted"),
        pytest.param(graph(), {"spec": 5}, id="an old state that cannot be read"),
        pytest.param(graph(restart={"id": "r2"}), rolling(graph(), None), id="restart without a rollout"),
        pytest.param(graph(restart={"id": "r2"}), rolling(graph(), "Completed"), id="restart after it"),
        pytest.param(model(modelName="c"), model(), id="the name of a model"),
    ],
)
def test_an_update_is_taken(new: Object, old: Object) -> None:
    assert verdict(new, old).allowed


def test_an_invalid_value_may_not_replace_another_even_with_the_same_message() -> None:
    before, after = with_service(replicas=-2), with_service(replicas=-3)
    assert not verdict(after, before).allowed
    assert verdict(labelled(before, labels={"team": "a"}), before).allowed


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spec.services.a.b.replicas", 1),
        ("spec.services.a.replicas", None),
        ("spec.list[1].x", "y"),
        ("spec.list[7].x", None),
        ("spec.list", None),
        ("metadata.annotations.nvidia.com/x", "z"),
        ("metadata.annotations.nvidia.com/x.y", None),
        ("metadata.labels.nvidia.com/x", None),
        ("spec.services[a.b].replicas", None),
        ("", None),
    ],
)
def test_a_path_leads_to_the_value_that_it_is_about(path: str, expected: Any) -> None:
    document: Object = {
        "metadata": {"annotations": {"nvidia.com/x": "z", "nvidia": {"com/x": "no"}}},
        "spec": {"services": {"a.b": {"replicas": 1}, "": {}}, "list": [{}, {"x": "y"}]},
    }
    assert expected == scalars_at(document, [path]).get(path)


def test_problems_and_forbidden_changes_are_reported_together() -> None:
    found = verdict({**BAD, "spec": {**BAD["spec"], "backendFramework": "vllm"}}, graph())
    assert 2 == len(found.problems)


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (with_service(replicas="two"), "spec.services[...].replicas: Expected `int | null`, got `str`"),
        (
            document("DynamoGraphDeployment", {"services": []}),
            "spec.services: Expected `object`, got `array`",
        ),
        (document("DynamoModel", {"modelName": 5}), "spec.modelName: Expected `str`, got `int`"),
        (
            document("DynamoGraphDeploymentRequest", {"backend": "vlm"}),
            "spec.backend: Invalid enum value 'vlm'",
        ),
    ],
    ids=["number", "list", "text", "misspelt"],
)
def test_what_its_schema_lets_pass_and_does_not_fit_its_type_is_refused(new: Object, expected: str) -> None:
    found = verdict(new)
    assert "decode_failed" == found.reason
    assert [expected] == [str(each) for each in found.problems]


@pytest.mark.parametrize("text", [b"null", b"5", b'"x"', b"[]", b"{}", b'{"metadata":[]}'])
def test_an_undecodable_object_is_refused(text: bytes) -> None:
    at = ReviewContext(RenderSettings())
    assert not decide(rules_of(graph()), msgspec.Raw(text), None, at).allowed


def test_a_restart_waits_for_a_rolling_update() -> None:
    before, again = (rolling(graph(restart={"id": name}), "InProgress") for name in ("r1", "r2"))
    expected = (
        "spec.restart.id cannot be changed while a rolling update is in progress "
        "(status.rollingUpdate.phase is InProgress); wait until it is Completed"
    )
    assert expected == "\n".join(map(str, verdict(again, before).problems))
    assert "rollout_in_progress" == verdict(again, before).reason
    assert verdict(before, before).allowed
    assert verdict(rolling(graph(), "InProgress"), before).allowed


def test_an_operator_that_does_not_know_itself_takes_nobody_for_itself() -> None:
    at = ReviewContext(RenderSettings(), user="", operator="")
    old, new = (msgspec.Raw(msgspec.json.encode(adapted(count))) for count in (1, 3))
    assert not decide(rules_of(graph()), new, old, at).allowed


def test_a_request_that_runs_keeps_its_spec() -> None:
    before = with_status(request(), state="Profiling")
    found = verdict(with_status(request(model="n"), state="Profiling"), before)
    assert "spec cannot be modified in state 'Profiling'" in "\n".join(map(str, found.problems))


SMALL = RenderSettings(largest_object_bytes=2000)


def large(letters: int) -> Object:
    return {
        **labelled(graph({"w": worker(annotations={"note": "x" * letters})}), annotations={"a": "z" * 9000}),
        "status": {"state": "y" * 9000},
    }


def sized(new: Object, old: Object | None = None) -> Any:
    texts = [msgspec.Raw(msgspec.json.encode(each)) if each else None for each in (new, old)]
    assert texts[0] is not None
    return decide(rules_of(new), texts[0], texts[1], ReviewContext(SMALL))


def test_an_object_over_the_limit_is_refused_with_its_size_and_the_limit() -> None:
    found = sized(large(5000))
    assert not found.allowed
    assert found.reason == "too_large"
    uncounted = (large(0)["status"], large(0)["metadata"]["annotations"])
    size = len(msgspec.json.encode(large(5000))) - sum(map(len, map(msgspec.json.encode, uncounted)))
    counted = f"document: the object has {size} bytes without its status and annotations"
    (problem,) = found.problems
    assert f"{counted} (limit 2000, --largest-object-bytes)" == str(problem)


def test_status_annotations_and_managed_fields_do_not_count_to_the_size() -> None:
    assert sized(labelled(large(10), managedFields=[{"fieldsV1": {"f:x": "y" * 9000}}])).allowed


def test_a_stored_object_over_the_limit_may_shrink_be_labelled_and_go_but_not_grow() -> None:
    stored = large(5000)
    assert sized(large(4000), stored).allowed
    assert "(as before)" in sized(stored, stored).warnings[0]
    assert not sized(large(5001), stored).allowed
    assert not sized(BAD, {**stored, **BAD, "rest": "x" * 5000}).allowed
    assert sized(labelled(large(6000), deletionTimestamp="2026-01-01T00:00:00Z"), stored).allowed


@pytest.mark.parametrize("metadata", [3, {"name": 3}, {"deletionTimestamp": {}}])
def test_a_large_object_whose_metadata_cannot_be_read_is_refused(metadata: Any) -> None:
    assert not sized({**large(5000), "metadata": metadata, "spec": {"x": "y" * 5000}}).allowed


def test_a_new_graph_is_validated_for_the_provider_that_its_controller_will_choose() -> None:
    queued = labelled(graph(), annotations={"nvidia.com/kai-scheduler-queue": "not a queue"})
    assert verdict(queued).allowed
    assert not verdict(queued, cluster=ClusterContext(grove_served=True)).allowed


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_judged_in_these_words(row: Row) -> None:
    restricted = "lab" if row.restricted else ""
    settings = type(SETTINGS)(epp_cluster_role_name="epp", restricted_namespace=restricted)
    around = ClusterContext(pools_served=row.pools_served)
    found = verdict(row.new, row.old, user=row.user, settings=settings, cluster=around)
    assert row.refused == "\n".join(map(str, found.problems))
    assert row.warnings == found.warnings


def test_every_rule_has_an_accepted_and_a_refused_or_warned_example() -> None:
    fine = {row.id for row in ROWS if not row.refused and not row.warnings}
    told = {row.id for row in ROWS if row.refused or row.warnings}
    without_refusal, without_acceptance = {"R2", "DGDR-U"}, {"S6", "S10", "S13", "G10", "DCD-U1"}
    without_acceptance |= {"M3", "M4", "R4", "R6"}
    assert without_refusal == fine - told
    assert without_acceptance == told - fine
