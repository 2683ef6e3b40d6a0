"""Whose fields are whose after an earlier operator: the sets of fields."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from field_sets import Paths, entry, fields, members, paths
from kube_runtime.apply.managed_fields import with_manager
from kube_runtime.types.meta import Object

MARK = "example.com/earlier"
OURS = "operator"
BOOKS: Object = {"f:metadata": {"f:annotations": {f"f:{MARK}": {}}}}


def with_books(owned: Paths) -> Object:
    return {**fields(owned), **copy.deepcopy(BOOKS)}


@given(paths, paths, paths, paths, st.booleans())
def test_what_the_earlier_operator_owned_is_ours_and_nothing_of_others_changes(
    first: Paths, second: Paths, ours: Paths, foreign: Paths, we_have_applied: bool
) -> None:
    others = [
        entry("kubectl-edit", "Update", fields(foreign)),
        entry("manager", "Update", fields(foreign), subresource="status"),
        entry("manager", "Update", fields(foreign), apiVersion="v2"),
        entry("manager", "Apply", fields(foreign)),
        entry("horizontal-pod-autoscaler", "Update", fields(foreign), subresource="scale"),
    ]
    own = [entry(OURS, "Apply", fields(ours))] if we_have_applied else []
    theirs = [entry("manager", "Update", with_books(first)), entry("manager", "Update", fields(second))]
    before = [*theirs, *others, *own]
    untouched = copy.deepcopy(before)
    after = with_manager(before, mark=MARK, manager=OURS)
    assert after is not None
    assert untouched == before
    (result,) = [each for each in after if each not in others]
    assert (OURS, "Apply", "v1") == (result["manager"], result["operation"], result["apiVersion"])
    wanted = members(with_books(first)) | second | (ours if we_have_applied else frozenset())
    assert wanted == members(result["fieldsV1"])
    assert all(each in after for each in others)
    assert len(others) + 1 == len(after)
    assert with_manager(after, mark=MARK, manager=OURS) is None


@given(st.lists(paths, max_size=3))
def test_without_the_books_of_the_earlier_operator_nothing_moves(foreign: list[Paths]) -> None:
    entries = [entry(f"m{at}", "Update", fields(each)) for at, each in enumerate(foreign)]
    assert with_manager(entries, mark=MARK, manager=OURS) is None


def test_entries_in_a_format_that_we_do_not_know_stay() -> None:
    unknown = {**entry("manager", "Update", BOOKS), "fieldsType": "FieldsV2"}
    assert with_manager([unknown], mark=MARK, manager=OURS) is None
