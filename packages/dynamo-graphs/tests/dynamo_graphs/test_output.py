"""What is written is read back unchanged, by every reader."""

import io
import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamo_graphs.output import write_json, write_yaml
from dynamo_operator.documents import documents

LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.text("0123456789-+._:xobeEyYnNTtfF~ \n", max_size=6)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def written(*objects: Any) -> str:
    stream = io.StringIO()
    write_yaml(objects, stream)
    return stream.getvalue()


@given(st.dictionaries(st.text(), VALUES, min_size=1, max_size=3))
def test_reading_is_the_inverse_of_writing(value: dict[str, Any]) -> None:
    assert [value, value] == [each.value for each in documents("f", written(value, value))]


@pytest.mark.parametrize(
    "text", ["yes", "y", "no", "1e3", "0o17", "0777", "1_000", "1:30", "2020-01-01", "~", "", "=", "<<"]
)
def test_a_string_that_a_reader_could_mistake_is_quoted(text: str) -> None:
    output = written({"a": text})
    assert f"---\na: '{text}'\n" == output
    assert text == yaml.safe_load(output)["a"]


def test_shared_values_are_written_out_lines_become_a_block_and_are_not_folded() -> None:
    shared, text = {"x": [1]}, " ".join("word" for _ in range(300))
    assert "---\na:\n  x:\n  - 1\nb:\n  x:\n  - 1\n" == written({"a": shared, "b": shared})
    assert "---\na: |\n  b\n  c\n" == written({"a": "b\nc\n"})
    assert f"---\na: {text}\n" == written({"a": text})


def test_json_is_one_list() -> None:
    stream = io.StringIO()
    write_json([{"a": 1}, {"b": "é"}], stream)
    listed = {"apiVersion": "v1", "kind": "List", "items": [{"a": 1}, {"b": "é"}]}
    assert listed == json.loads(stream.getvalue())
