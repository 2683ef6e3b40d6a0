"""What is rendered when it is read is a sequence like any other."""

from typing import Any

import pytest

from dynamo_graphs.render.objects import Concatenated
from kube_runtime.kind import Object

OBJECTS: tuple[Object, ...] = tuple({"kind": f"Kind{number}"} for number in range(5))
TOGETHER = Concatenated((OBJECTS[:2], (), OBJECTS[2:]))


@pytest.mark.parametrize(
    "index", [0, 1, 2, 4, -1, -5, slice(None), slice(1, 4), slice(None, None, -2)]
)
def test_it_has_the_objects_of_its_parts(index: Any) -> None:
    assert OBJECTS[index] == TOGETHER[index]


@pytest.mark.parametrize("index", [5, -6])
def test_it_ends_where_its_parts_end(index: int) -> None:
    with pytest.raises(IndexError):
        TOGETHER[index]
    assert list(OBJECTS) == list(TOGETHER)
    assert len(OBJECTS) == len(TOGETHER)
