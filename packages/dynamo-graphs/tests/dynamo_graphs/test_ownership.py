"""Whose fields an apply takes over, and whose are a conflict. The API server's part: tests/cluster/graph."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_graphs.ownership import (
    LAST_APPLIED,
    OwnedField,
    conflict_text,
    is_person,
    overwriting,
    owned_fields,
    taken_over,
    with_last_applied,
    without_left_out,
)
from field_sets import Paths, entry, fields, members, paths
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Object

APPLIED = "kubectl-client-side-apply"
ARGO = "argocd-controller"


def an_object(*entries: Object, record: str = "", **content: object) -> Object:
    notes = {"annotations": {LAST_APPLIED: record}} if record else {}
    metadata: Object = {"name": "chat", "namespace": "n", "managedFields": list(entries), **notes}
    return {"apiVersion": "v1", "kind": "K", "metadata": metadata, **content}


def a_conflict(*causes: tuple[str, str]) -> Conflict:
    found = [
        {"reason": "FieldManagerConflict", "field": path, "message": message} for path, message in causes
    ]
    return Conflict(409, "Conflict", "Apply failed with conflicts", details={"causes": found})


@given(paths, paths, paths)
def test_what_kubectl_wrote_as_a_file_becomes_ours_and_no_entry_of_others_changes(
    theirs: Paths, ours: Paths, foreign: Paths
) -> None:
    others = [
        entry("kubectl-edit", "Update", fields(foreign)),
        entry("kubectl-scale", "Update", fields(foreign), subresource="scale"),
        entry(APPLIED, "Update", fields(foreign), subresource="status"),
        entry(ARGO, "Apply", fields(foreign)),
        entry("helm", "Update", fields(foreign)),
        entry("dynamo-operator-scaling", "Update", fields(foreign)),
        entry("dynamoctl", "Update", fields(foreign)),
    ]
    own = entry("dynamoctl", "Apply", fields(ours))
    before = an_object(entry(APPLIED, "Update", fields(theirs)), *others, own)
    after = taken_over(before)
    assert after is not None
    (result,) = [item for item in after if item not in others]
    assert ("dynamoctl", "Apply") == (result["manager"], result["operation"])
    assert theirs | ours == members(result["fieldsV1"])
    assert len(others) + 1 == len(after)
    assert taken_over(an_object(*after)) is None


def leaves(value: object, at: tuple[str, ...] = ()) -> Paths:
    if not isinstance(value, dict):
        return frozenset([at])
    return frozenset(path for name, inside in value.items() for path in leaves(inside, (*at, f"f:{name}")))


def content(paths_: Paths) -> Object:
    result: Object = {}
    for path in paths_:
        at = result
        for name in path[:-1]:
            at = at.setdefault(name.removeprefix("f:"), {})
        at[path[-1].removeprefix("f:")] = 1
    return result


leaf_paths = st.frozensets(st.tuples(*[st.sampled_from(["f:a", "f:b", "f:c"])] * 3), max_size=9)


@given(leaf_paths, leaf_paths, leaf_paths)
def test_a_field_leaves_if_kubectl_applied_it_and_no_manager_sets_it_now(
    present: Paths, theirs: Paths, others: Paths
) -> None:
    theirs, others = theirs & present, others & present
    live = an_object(entry(APPLIED, "Update", fields(theirs)))
    after = an_object(
        entry(APPLIED, "Update", fields(theirs)), entry("m", "Update", fields(others)), **content(present)
    )
    left = without_left_out(after, live)
    kept = {k: v for k, v in left.items() if k in ("a", "b", "c")}
    assert present - (theirs - others) == (leaves(kept) if kept else frozenset())


def test_entries_of_lists_leave_by_their_key() -> None:
    theirs: Object = {"f:envs": {'k:{"name":"A"}': {".": {}, "f:name": {}}, 'k:{"name":"B"}': {".": {}}}}
    names: Object = {"f:finalizers": {'v:"x"': {}, 'v:"y"': {}}}
    kept = {"f:envs": {'k:{"name":"B"}': {".": {}}}, "f:finalizers": {'v:"y"': {}}}
    live = an_object(entry(APPLIED, "Update", {**theirs, **names}))
    after = an_object(
        entry("dynamoctl", "Apply", kept), envs=[{"name": "A"}, {"name": "B"}], finalizers=["x", "y"]
    )
    left = without_left_out(after, live)
    assert ([{"name": "B"}], ["y"]) == (left["envs"], left["finalizers"])


def test_kubectls_record_of_the_file_stays_up_to_date() -> None:
    owned: Object = {"f:metadata": {"f:annotations": {f"f:{LAST_APPLIED}": {}}}}
    file: Object = an_object(spec={"a": 1})
    del file["metadata"]["managedFields"]
    record = json.dumps({**file, "metadata": {**file["metadata"], "annotations": {}}})
    live = an_object(entry(APPLIED, "Update", owned), record=record)
    assert record == with_last_applied(file, live)["metadata"]["annotations"][LAST_APPLIED]
    edited = {**file, "spec": {"a": 2}}
    text = with_last_applied(edited, live)["metadata"]["annotations"][LAST_APPLIED]
    assert {"a": 2} == json.loads(text)["spec"]
    assert {} == json.loads(text)["metadata"]["annotations"]
    for body in (None, an_object(), an_object(entry(ARGO, "Update", owned), record=record)):
        assert edited == with_last_applied(edited, body)


@pytest.mark.parametrize(
    ("message", "manager"),
    [
        ('conflict with "kubectl-client-side-apply" using nvidia.com/v1alpha1', "kubectl-client-side-apply"),
        ('conflict with "helm" with subresource "scale" using v1 at 2026-01-01T00:00:00Z', "helm"),
        ("conflict", "another manager"),
    ],
)
def test_the_managers_in_a_conflict(message: str, manager: str) -> None:
    assert (OwnedField(manager, "spec.a"),) == owned_fields(a_conflict((".spec.a", message)))


def test_a_conflict_of_versions_is_about_no_field() -> None:
    assert () == owned_fields(Conflict(409, "Conflict", "the object has been modified"))
    assert () == owned_fields(a_conflict()) == owned_fields(Conflict(409, "Conflict", "", details={}))


def test_a_conflict_names_field_manager_and_remedy_once() -> None:
    fields_ = [OwnedField(ARGO, "spec.a"), OwnedField(ARGO, "spec.b"), OwnedField("kubectl-edit", "spec.c")]
    text = conflict_text(fields_)
    assert text == (
        "conflict: argocd-controller owns spec.a, spec.b (change it in the Git repository); "
        "--force-conflicts, or force=True in Python, overwrites it"
    )
    assert "" == conflict_text(fields_[2:])
    assert "leave them out of the file" in conflict_text([OwnedField("dynamo-operator-scaling", "spec.a")])
    assert ["conflict with argocd-controller", "overwrites what kubectl-edit has set"] == [
        line.partition(":")[0] for line in overwriting(fields_)
    ]


@pytest.mark.parametrize(
    ("manager", "is_personal"),
    [
        *((name, True) for name in ("kubectl", "kubectl-edit", "kubectl-patch", "dynamoctl")),
        *((name, False) for name in ("dynamo-operator", ARGO, "kube-controller-manager", "Mozilla")),
    ],
)
def test_who_is_a_person(manager: str, is_personal: bool) -> None:
    assert is_personal == is_person(manager)
