"""YAML means what it means to kubectl, and every mistake has a place."""

import json
import re
import threading
import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
import yaml

from dynamo_operator.documents import DEPTH_LIMIT, ONE_AT_A_TIME, ShallowLoader, documents, is_deep, scalar


def mistakes(text: str, *limit: int) -> list[str]:
    with pytest.raises(ExceptionGroup) as caught:
        documents("f.yaml", text, *limit)
    return [str(error) for error in caught.value.exceptions]


# Each pair was printed by `kubectl label --local -f - -o json` of kubectl 1.32.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("y", True),
        ("on", True),
        ("TRUE", True),
        ("n", False),
        ("off", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("1:30", "1:30"),
        ("2020-01-01", "2020-01-01"),
        ("2020-01-01T00:00:00Z", "2020-01-01T00:00:00Z"),
        ("=", "="),
        ("0777", 511),
        ("0o17", 15),
        ("0o8", "0o8"),
        ("089", 89.0),
        ("0b11", 3),
        ("0b12", "0b12"),
        ("0x1F", 31),
        ("-0x10", -16),
        ("1_000", 1000),
        ("1e3", 1000.0),
        ("1e3_0", 1e30),
        ("1.", 1.0),
        (".5", 0.5),
        (".5e3", 500.0),
        ("-.5", -0.5),
        ("1_0.5", 10.5),
        ("-0", 0),
        ("+1", 1),
        ("9007199254740993", 9007199254740993),
        ("12345678901234567890", 12345678901234567890),
        ("123456789012345678901234567890", 1.2345678901234568e29),
        ("1e999", "1e999"),
        ("yEs", "yEs"),
        ("-", "-"),
        ("._", "._"),
    ],
)
def test_plain_scalars_mean_what_they_mean_to_kubectl(text: str, value: Any) -> None:
    assert (type(value), value) == (type(scalar(text)), scalar(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('[\'yes\', "1", "null"]', ["yes", "1", "null"]),
        ("a: !!str yes\nb: !!float 1\nc: !!null ~", {"a": "yes", "b": 1, "c": None}),
        ("1: a\n2.5: b\ntrue: c\nno: d\n", {"1": "a", "2.5": "b", "true": "c", "false": "d"}),
        ("a: &a {b: 1}\nc:\n  <<: *a\n  b: 2\n", {"a": {"b": 1}, "c": {"b": 2}}),
        ('{"a": "\\ud83d\\ude00", "b": "\\/",\n\t"c": [1e3]}', {"a": "😀", "b": "/", "c": [1000.0]}),
        ("9" * 5000, "9" * 5000),
    ],
    ids=["quoted scalars", "tags", "keys", "a merged key", "JSON", "an integer without end"],
)
def test_a_document_means_what_it_means_to_kubectl(text: str, value: Any) -> None:
    assert value == documents("f", text)[0].value


def test_merge_keys_and_aliases_are_followed() -> None:
    text = "a: &a {x: 1, w: 1}\nb: &b {w: 2, z: 2}\nc:\n  <<: [*a, *b]\n  x: 3\n"
    assert {"x": 3, "w": 1, "z": 2} == documents("f", text)[0].value["c"]
    twice = "- &a {x: 1, w: 1}\n- &b {w: 2, z: 2}\n- {<<: *a, <<: *b}"
    assert {"x": 1, "w": 1, "z": 2} == documents("f", twice)[0].value[2]


def test_empty_documents_are_left_out() -> None:
    assert [1, 2] == [each.value for each in documents("f", "---\n---\n1\n---\n# nothing\n---\n2\n")]


def test_all_mistakes_of_a_text_are_reported() -> None:
    text = "a:\n  b: 1\n  b: 2\n---\nb: .inf\n~: c\n"
    assert [
        "f.yaml:3:3: duplicate key 'b'",
        "f.yaml:5:4: invalid number .inf (outside the range of Kubernetes)",
        "f.yaml:6:1: a key must not be null",
    ] == mistakes(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: [1\nb", "f.yaml:3:1"),
        ("a:\n\tb: 1", "f.yaml:2:1"),
        ("a: *x", "f.yaml:1:4"),
        ('a: "\\ud83d"', "f.yaml:1:7"),
        ("a: \x00", "f.yaml"),
    ],
)
def test_invalid_yaml_is_one_error(text: str, place: str) -> None:
    (line,) = mistakes(text)
    assert line.startswith(f"{place}: unreadable YAML: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: !foo b", "cannot read 'b' as !foo"),
        ("a: !!int x", "cannot read 'x' as !!int"),
        ("a: &x [*x]", "an alias refers to a value that contains it"),
        ("? [a]\n: b", "expected a string as key"),
        ("a: {<<: 1}", "`<<` expects a mapping or a list of mappings"),
    ],
)
def test_what_kubernetes_cannot_hold_is_a_mistake(text: str, message: str) -> None:
    assert [message] == [line.partition(": ")[2] for line in mistakes(text)]


def test_aliases_of_aliases_end() -> None:
    layers = "".join(f"a{n}: &a{n} [{','.join(f'*a{n - 1}' for _ in range(9))}]\n" for n in range(1, 9))
    assert ["f.yaml: more than 1000000 values, counted wherever an alias repeats them"] == mistakes(
        f"a0: &a0 x\n{layers}"
    )


@pytest.mark.parametrize(
    "text", ["[[" + "a," * 500_000 + "]]", "- ? [" + "a," * 500_000 + "]", "- a\n" * 250_000]
)
def test_values_are_counted_before_they_are_nodes(text: str) -> None:
    tracemalloc.start()
    (line,) = mistakes(text, 1000)
    assert line.endswith("unreadable YAML: more than 1000 values")
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1_000_000 + 2 * len(text)  # the reader encodes the text


def test_many_large_texts_are_parsed_one_at_a_time() -> None:
    def parse(_: int) -> int:
        time.sleep(0.01)
        return threading.get_ident()

    assert 1 == len({*ONE_AT_A_TIME.map(parse, range(6))})


OF_THE_USER = re.compile("devcluster|kubeconfig|login_provider|playground|manifests")
"""Modules that read files of the user or of this repository."""


def test_no_module_reads_yaml_without_a_bound() -> None:
    files = Path(__file__).parents[4].glob("packages/*/src/**/*.py")
    texts = [file.read_text("utf-8") for file in files if not OF_THE_USER.search(str(file))]
    read = re.findall(r"yaml\.(?:\w+_)?(?:load|compose|parse|scan)(?:_all)?\(.*", "\n".join(texts))
    assert len(read) > 2
    assert not [line for line in read if "Loader=ShallowLoader" not in line]


@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 100_000])
def test_nesting_without_end_is_a_mistake_and_not_the_end_of_the_process(text: str) -> None:
    (line,) = mistakes(text)
    assert line.endswith("unreadable YAML: nested deeper than 100 levels")


def test_nesting_by_aliases_is_a_mistake() -> None:
    layers = "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 600))
    assert "f.yaml:1:5: its aliases nest deeper than 100 levels" in mistakes(f"a0: &a0 [x]\n{layers}")


def test_a_field_has_a_place() -> None:
    text = 'a:\n  - b: 1\n  - "c.d/e":\n      f-g: 2\n'
    document = documents("f", text)[0]
    assert "f:4:7" == document.place('a[1]["c.d/e"].f-g')
    assert "f:3:5" == document.place('a[1]["c.d/e"].missing')
    assert "f:2:5" == document.place("a[0]")
    assert "f:1:1" == document.place("document")


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
