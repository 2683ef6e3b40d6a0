"""A value is deep if no text could be read that has it."""

import json
from typing import Any

import pytest
import yaml

from dynamo_operator.documents import DEPTH_LIMIT, ShallowLoader, is_deep


def nested(levels: int, *, in_lists: bool) -> Any:
    """A value with a number at that level."""
    value: Any = 1
    for _ in range(levels - 1):
        value = [value] if in_lists else {"a": value}
    return value


@pytest.mark.parametrize("in_lists", [False, True])
@pytest.mark.parametrize("levels", [1, 2, DEPTH_LIMIT - 1, DEPTH_LIMIT, DEPTH_LIMIT + 1, 300])
def test_it_is_the_readers_own_limit(levels: int, *, in_lists: bool) -> None:
    value = nested(levels, in_lists=in_lists)
    assert (levels > DEPTH_LIMIT) is is_deep(value)
    text = json.dumps(value)
    if levels > DEPTH_LIMIT:
        with pytest.raises(yaml.MarkedYAMLError, match="nested deeper than"):
            yaml.load(text, Loader=ShallowLoader)  # noqa: S506  a safe loader
    else:
        assert value == yaml.load(text, Loader=ShallowLoader)  # noqa: S506  a safe loader


def test_breadth_is_no_depth() -> None:
    assert not is_deep({str(each): [each] * 10 for each in range(1000)})
