"""Edits of YAML text keep what they do not change, above all comments."""

import copy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_graphs import Graph
from dynamo_graphs.yaml_editor import edited, is_same
from dynamo_operator.documents import documents
from kube_runtime.types.meta import Object

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.yaml"))

COMMENTED = """\
# The head.
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat   # the name
spec:
  # All services.
  services:
    Frontend: # the first
      componentType: frontend
      extraPodSpec: {mainContainer: {image: "example.com/i:1"}}  # in one line
    # The worker.
    Worker:
      componentType: worker
      replicas: 2 # two
      envs:
      # a variable
      - name: A # its name
        value: "1"
      - {name: B, value: "2"} # another
      extraPodSpec:
        mainContainer:
          image: example.com/i:1
          command: [python3, -m, dynamo.vllm]
          args:
            - --model # what to serve
            - m
# The end.
"""


def test_comments_survive_an_edit() -> None:
    graph = Graph.from_yaml(COMMENTED)
    assert COMMENTED == graph.to_yaml()
    changed = graph.service("Worker", replicas=3, env={"A": "7"}, gpus=2).with_spec(replicas=2)
    text = changed.to_yaml()
    assert Graph.from_yaml(text) == changed
    before, after = COMMENTED.splitlines(), text.splitlines()
    assert ["      replicas: 2 # two"] == [line for line in before if line not in after][:1]
    assert "      replicas: 3 # two" in after
    kept = [line for line in before if "#" in line and "variable" not in line and "name" not in line]
    assert {"      replicas: 2 # two", '      - {name: B, value: "2"} # another'} >= {
        line for line in kept if line not in after
    }


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        (lambda it: it["metadata"].update(name="other"), "name: chat"),
        (lambda it: it["spec"]["services"].pop("Frontend"), "Frontend"),
        (lambda it: it["spec"]["services"]["Worker"].pop("replicas"), "replicas"),
        (lambda it: it["spec"]["services"]["Worker"]["envs"].pop(0), "name: A"),
        (lambda it: it["spec"]["services"]["Worker"]["envs"].insert(1, {"name": "C"}), ""),
        (lambda it: it["spec"]["services"]["Worker"]["envs"].clear(), "name: A"),
        (lambda it: it["spec"]["services"].update(New={"replicas": 1, "labels": {}}), ""),
        (lambda it: it["spec"]["services"]["Worker"].update(annotations={"a": "x\ny\n"}), ""),
        (lambda it: it.update(status={"state": "successful"}), ""),
        (lambda it: it["spec"].clear(), "services"),
        (lambda it: it["spec"]["services"]["Worker"]["envs"][0].pop("name"), "name: A"),
    ],
)
def test_any_change_is_written(change: object, gone: str) -> None:
    (before,) = documents("text", COMMENTED)
    after = copy.deepcopy(before.value)
    change(after)  # type: ignore[operator]
    text = edited(COMMENTED, before.value, after)
    assert text is not None
    assert is_same(after, documents("text", text)[0].value)
    assert text.startswith("# The head.\n")
    assert text.endswith("# The end.\n")
    assert not gone or f"  {gone}" not in text


@pytest.mark.parametrize("text", ["a: &x {b: 1}\nc: *x\n", "x: &x {b: 1}\nc:\n  <<: *x\n", '{"a": 1}\n'])
def test_what_cannot_be_edited_in_place_is_left_to_the_caller(text: str) -> None:
    before = documents("text", text)[0].value
    assert text == edited(text, before, copy.deepcopy(before))
    assert edited(text, before, {**before, "a": 2}) is None


@pytest.mark.parametrize(
    ("one", "other"), [(True, 1), (1, 1.0), ({"a": 1}, {"a": True}), ([1], [1, 2]), ("1", 1)]
)
def test_values_of_other_types_differ(one: object, other: object) -> None:
    assert not is_same(one, other)
    assert is_same(one, copy.deepcopy(one))


def places(value: object) -> list[tuple[object, object]]:
    """Each collection of a document with each of its keys."""
    keys = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    inner = [each for key in keys for each in places(value[key])]  # type: ignore[index]
    return [*((value, key) for key in keys), *inner]


VALUES = st.sampled_from(
    [None, True, 0, 1.5, "", "yes", "two\nlines\n", "# text", "a: b", [], {}, [1, [2]], {"k": {"l": 1}}]
).map(copy.deepcopy)  # edits of one example must not reach the next


@given(st.data())
def test_any_edits_of_an_example_are_written_or_left_to_the_caller(data: st.DataObject) -> None:
    file = data.draw(st.sampled_from(EXAMPLES))
    text = file.read_text(encoding="utf-8").partition("---\n")[0]
    before: Object = documents("text", text)[0].value
    after = copy.deepcopy(before)
    for _ in range(data.draw(st.integers(1, 4))):
        found, key = data.draw(st.sampled_from(places(after)))
        what = data.draw(st.sampled_from(["set", "delete", "add"]))
        if what == "set":
            found[key] = data.draw(VALUES)  # type: ignore[index]
        elif what == "delete":
            del found[key]  # type: ignore[attr-defined]
        elif isinstance(found, dict):
            found[data.draw(st.sampled_from(["new", "n: o", "1"]))] = data.draw(VALUES)
        elif isinstance(found, list) and isinstance(key, int):
            found.insert(key, data.draw(VALUES))
        if not after:
            return
    changed = edited(text, before, after)
    if changed is not None:
        assert is_same(after, documents("text", changed)[0].value)
    if "apiVersion" in after and "kind" in after:
        head = [line for line in text.splitlines() if line.startswith("#")]
        assert changed is None or changed.splitlines()[: len(head)] == head
