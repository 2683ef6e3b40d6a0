"""The same rules judge an object in both versions, and speak of the fields that its author wrote."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dynamo_operator.admission.decide import Decision, ReviewContext
from dynamo_operator.admission.written import decide_written
from dynamo_operator.graph.warnings import ClusterContext
from dynamo_operator.versions.conversion import ConversionError, convert
from former_fields import former_fields_in
from kube_runtime.types.meta import Object
from reviews.asking import OPERATOR, SETTINGS, rules_of, verdict
from reviews.rows import ROWS, Row

LATER = "nvidia.com/v1beta1"


def written(new: Object, old: Object | None = None, user: str = "alice", **context: Any) -> Decision:
    """The decision on a document in v1beta1, or on a change of it."""
    at = ReviewContext(context.pop("settings", SETTINGS), user, OPERATOR, **context)
    text = msgspec.Raw(msgspec.json.encode(old)) if old is not None else None
    return decide_written(rules_of(new), msgspec.Raw(msgspec.json.encode(new)), text, at)


HAS_A_DEFAULT = "spec.profilingConfig.profilerImage"
"""What v1alpha1 requires, and v1beta1 does not."""


def convertible() -> Iterator[Row]:
    for row in ROWS:
        try:
            convert(row.new, LATER)
        except ConversionError:  # a model, or a value that the schema refuses first
            continue
        yield row


@pytest.mark.parametrize("row", [*convertible()], ids=lambda row: row.name)
def test_a_row_is_judged_alike_in_v1beta1(row: Row) -> None:
    settings = type(SETTINGS)(
        epp_cluster_role_name="epp", restricted_namespace="lab" if row.restricted else ""
    )
    context: Object = {"settings": settings, "cluster": ClusterContext(pools_served=row.pools_served)}
    old = None if row.old is None else convert(row.old, LATER)
    first = verdict(row.new, row.old, user=row.user, **context)
    later = written(convert(row.new, LATER), old, row.user, **context)
    paths = {problem.path for problem in first.problems}
    assert first.allowed == later.allowed or paths == {HAS_A_DEFAULT}, later.problems
    for problem in (*later.problems, *later.warning_problems):
        is_preserved = problem.path.startswith("metadata.annotations[nvidia.com/")
        assert is_preserved or not former_fields_in(str(problem)), problem


def graph(*components: Object, **spec: Any) -> Object:
    metadata = {"name": "chat", "namespace": "lab"}
    body = {"components": list(components), **spec}
    return {"apiVersion": LATER, "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": body}


def worker(name: str = "w", **container: Any) -> Object:
    main = {"name": "main", "image": "r/vllm:1.2.0", "command": ["run"], **container}
    side = {"name": "side", "image": "r/side:1.0.0"}
    return {"name": name, "type": "worker", "podTemplate": {"spec": {"containers": [side, main]}}}


EXPERIMENTAL = "spec.components[0].experimental"
GPUS = "podTemplate.spec.containers[main].resources.limits.nvidia.com/gpu"
MAIN = "spec.components[0].podTemplate.spec.containers[1]"


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (graph(), ["spec.components: must have at least one component"]),
        (
            graph(worker(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}})),
            [f"{MAIN}.resources.requests.cpu: "],
        ),
        (graph(worker(env=[{"name": "A"}, {"name": "", "value": "x"}])), [f"{MAIN}.env[1].name: "]),
        (
            graph({**worker(), "replicas": 2, "minAvailable": 2}),
            ["spec.components[0].minAvailable: is currently supported only for Grove-backed "],
        ),
        (
            graph({**worker(), "frontendSidecar": "front"}),
            ["spec.components[0].frontendSidecar: must match a podTemplate.spec.containers name"],
        ),
        (
            graph({**worker(), "experimental": {"failover": {"mode": "IntraPod"}}}),
            [f'{EXPERIMENTAL}.failover: gpuMemoryService is required when failover mode is "IntraPod"'],
        ),
        (
            graph({**worker(), "experimental": {"gpuMemoryService": {}}}),
            [f"{EXPERIMENTAL}.gpuMemoryService: GPU memory service requires {GPUS} >= 1"],
        ),
    ],
)
def test_a_refusal_names_what_was_written(new: Object, expected: list[str]) -> None:
    found = [str(problem) for problem in written(new, cluster=ClusterContext()).problems]
    assert len(expected) == len(found), found
    assert all(text.startswith(start) for text, start in zip(found, expected, strict=True)), found


def test_a_change_is_refused_in_the_words_of_the_version() -> None:
    before, after = graph(worker()), graph(worker(), worker("b"))
    (problem,) = written(after, before).problems
    assert "spec.components: component topology is immutable and cannot be modified after creation: " in str(
        problem
    )
    assert "components added: [b]" in str(problem)


def test_what_was_wrong_before_is_refused_in_no_change_of_another_field() -> None:
    wrong = {**worker(), "frontendSidecar": "front"}
    assert not written(graph(wrong)).allowed
    assert written(graph({**wrong, "replicas": 3}), graph(wrong)).allowed


def test_a_document_that_no_conversion_reads_is_refused_at_the_wrong_field() -> None:
    (problem,) = written(graph({"name": 3})).problems
    assert "spec.components[0].name" == problem.path


SMALL = type(SETTINGS)(largest_object_bytes=2000)


def noted(letters: int, *others: Object) -> Object:
    labelled = worker()
    labelled["podTemplate"]["metadata"] = {"annotations": {"note": "x" * letters}}
    return graph(labelled, *others)


def test_an_object_over_the_limit_is_not_converted_to_compare_with_it() -> None:
    """It was never validated, so nothing runs that the change might not be allowed for."""
    assert not written(noted(10), noted(10, worker("b")), settings=SMALL).allowed
    assert written(noted(10), noted(5000, worker("b")), settings=SMALL).allowed
    assert written(noted(4000), noted(5000), settings=SMALL).allowed
    assert not written(noted(5000), noted(4000), settings=SMALL).allowed


@pytest.mark.parametrize("before", [graph({"name": 3}), {**graph(worker()), "spec": 3}])
def test_an_object_that_no_conversion_reads_may_be_repaired(before: Object) -> None:
    assert written(graph(worker()), before).allowed
    assert not written(graph(), before).allowed
