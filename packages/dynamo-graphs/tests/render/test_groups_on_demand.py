"""Groups are rendered when they are read, and are a sequence like any other."""

from typing import Any

import pytest

from dynamo_operator.component.render import Groups

_TEMPLATE: Any = {"metadata": {"labels": {}, "annotations": {}}, "spec": {}}
GROUPS = Groups("n", "c", 3, 2, {}, {}, leader=_TEMPLATE, worker=_TEMPLATE, digest="d")
OBJECTS = tuple(GROUPS)


def test_each_replica_has_two_objects() -> None:
    assert ["PodGroup", "LeaderWorkerSet"] * 3 == [each["kind"] for each in OBJECTS]
    names = [each["metadata"]["name"] for each in OBJECTS]
    assert ["c-0", "c-0", "c-1", "c-1", "c-2", "c-2"] == names


@pytest.mark.parametrize(
    "index", [0, 1, 2, 4, -1, -5, slice(None), slice(1, 4), slice(None, None, -2)]
)
def test_it_has_the_objects_of_a_tuple(index: Any) -> None:
    assert OBJECTS[index] == GROUPS[index]


@pytest.mark.parametrize("index", [6, -7])
def test_it_ends_where_its_groups_end(index: int) -> None:
    with pytest.raises(IndexError):
        GROUPS[index]
    assert len(OBJECTS) == len(GROUPS)
