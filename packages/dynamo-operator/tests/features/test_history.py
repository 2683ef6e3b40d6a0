"""Which former specs of a graph are kept."""

from typing import Any

import msgspec
import pytest

from dynamo_operator import labels
from dynamo_operator.features.decision import History
from dynamo_operator.features.history import (
    CHANGE_CAUSE,
    DEFAULT_HISTORY_LIMIT,
    parsed_history_limit,
    plan_history,
    revision_number,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import Object
from specs import a_graph, a_service


def graph(
    image: str = "one", *, uid: str = "uid", annotations: Any = None, **more: Any
) -> DynamoGraphDeployment:
    pod = {"mainContainer": {"image": image}}
    metadata = {"uid": uid, "annotations": annotations or {}}
    return a_graph({"W": a_service(extraPodSpec=pod, **more)}, metadata=metadata)


def stored(wanted: Object | None) -> ControllerRevision:
    """A revision as the API server has it."""
    assert wanted is not None
    return msgspec.convert(wanted, ControllerRevision)


def numbered(revision: ControllerRevision, label: str) -> ControllerRevision:
    marks = {**revision.metadata.labels, labels.GRAPH_REVISION: label}
    metadata = msgspec.structs.replace(revision.metadata, labels=marks)
    return msgspec.structs.replace(revision, metadata=metadata)


def after(*images: str, **more: Any) -> list[ControllerRevision]:
    """The revisions of a graph that had these images one after the other."""
    found: list[ControllerRevision] = []
    for image in images:
        plan = plan_history(graph(image, **more), found)
        found = [each for each in found if each not in plan.outdated]
        if plan.renewed is not None:
            again, number = plan.renewed
            found.remove(again)
            found.append(numbered(again, str(number)))
        if plan.created is not None:
            found.append(stored(plan.created))
        assert History() == plan_history(graph(image, **more), found), "one pass is enough"
    return found


def numbers(found: list[ControllerRevision]) -> list[int]:
    return sorted(map(revision_number, found))


def test_a_new_graph_has_its_spec_as_the_first_revision() -> None:
    created = plan_history(graph(replicas=3), ()).created
    assert created is not None
    assert 1 == created["revision"]
    assert 3 == created["data"]["spec"]["services"]["W"]["replicas"], "for a service that is gone"
    assert {labels.GRAPH: "chat", labels.GRAPH_REVISION: "1"} == created["metadata"]["labels"]


@pytest.mark.parametrize("change", [{"replicas": 7}, {}])
def test_what_scaling_writes_makes_no_revision(change: Any) -> None:
    first = stored(plan_history(graph(replicas=2), ()).created)
    assert History() == plan_history(graph(**change), [first])


def test_a_former_spec_that_comes_back_is_the_newest_and_not_written_again() -> None:
    found = after("one", "two", "one")
    assert [2, 3] == numbers(found)
    assert 2 == len({each.metadata.name for each in found})


def test_the_oldest_revisions_beyond_the_limit_are_deleted() -> None:
    assert list(range(6, 17)) == numbers(after(*map(str, range(16))))
    assert DEFAULT_HISTORY_LIMIT + 1 == len(after(*map(str, range(16))))
    limited = {labels.REVISION_HISTORY_LIMIT: "1"}
    assert [3, 4] == numbers(after("1", "2", "3", "4", annotations=limited))


def test_without_a_history_nothing_is_kept() -> None:
    found = after("one", "two")
    none = plan_history(graph("two", annotations={labels.REVISION_HISTORY_LIMIT: "0"}), found)
    assert (None, None, 2) == (none.created, none.renewed, len(none.outdated))


@pytest.mark.parametrize("label", ["", "x", "-1", "1e3", "٣", "9" * 9, "9" * 5000])
def test_a_label_that_a_user_broke_is_written_again(label: str) -> None:
    (only,) = after("one")
    assert (numbered(only, label), 1) == plan_history(graph(), [numbered(only, label)]).renewed


@pytest.mark.parametrize("label", ["999999998", "9" * 9])
def test_no_number_is_too_large_to_be_read(label: str) -> None:
    former = numbered(after("one")[0], label)
    created = stored(plan_history(graph("two"), [former]).created)
    assert History() == plan_history(graph("two"), [former, created])


@pytest.mark.parametrize("length", [242, 243, 253])
def test_a_revision_of_a_graph_with_a_long_name_has_a_valid_one(length: int) -> None:
    graphs = (a_graph({key: a_service()}, name="n" * length) for key in "XY")
    one, two = (stored(plan_history(each, ()).created).metadata.name for each in graphs)
    assert (True, True) == (one != two, max(len(one), len(two)) <= 253)


def test_a_current_revision_that_was_deleted_comes_back() -> None:
    old, current = after("one", "two")
    created = plan_history(graph("two"), [old]).created
    assert created is not None
    assert (current.metadata.name, 2) == (created["metadata"]["name"], created["revision"])


def test_a_graph_of_the_same_name_has_a_history_of_its_own() -> None:
    (old,) = after("one")
    created = plan_history(graph(uid="other"), ()).created
    assert created is not None
    assert old.metadata.name != created["metadata"]["name"]


def test_the_cause_of_a_change_is_copied_within_bounds() -> None:
    created = plan_history(graph(annotations={CHANGE_CAUSE: "x" * 200_000}), ()).created
    assert created is not None
    assert 1000 == len(created["metadata"]["annotations"][CHANGE_CAUSE])


@pytest.mark.parametrize(
    ("text", "limit"),
    [("0", 0), ("100", 100), ("101", None), ("", None), ("-1", None), ("٣", None), ("1.5", None)],
)
def test_limits(text: str, limit: int | None) -> None:
    assert limit == parsed_history_limit(text)
