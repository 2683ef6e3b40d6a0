"""Which inference framework a component runs."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.api import NAMES, NOOP
from dynamo_operator.component.framework import framework
from kube_runtime.kind import Object
from specs import a_component

PYTHON = ["python3", "-m", "dynamo.vllm"]


def found(
    command: list[str] | None = None,
    args: list[str] | None = None,
    explicit: str | None = None,
    component_type: str = "worker",
) -> str:
    main: Object = {"image": "x", "command": command, "args": args}
    component = a_component(
        componentType=component_type,
        extraPodSpec={"mainContainer": main},
        backendFramework=explicit,
    )
    seen = framework(component.spec)
    return seen.problem or seen.name


@pytest.mark.parametrize(
    ("command", "args", "name"),
    [
        (PYTHON, ["--model", "m"], "vllm"),
        (["/bin/sh", "-c"], ["cd /w && python3.12 -m dynamo.sglang --tp 16 | tee /o"], "sglang"),
        (["python3"], ["-m", "dynamo.trtllm"], "trtllm"),
        (["mypython", "-m", "dynamo.vllm"], None, "vllm"),
        (["python3"], ["-m", "other", "--x", "dynamo.vllm"], "vllm"),
        (["python3", "-mdynamo.vllm"], None, NOOP),
        (["sh", "-c"], ["python3 -m x 2>&1 dynamo.vllm"], NOOP),
        (["python3\v-m\vdynamo.vllm"], None, NOOP),
        (["python3\n-m\ndynamo.vllm"], None, "vllm"),
        (None, None, NOOP),
    ],
)
def test_it_is_read_from_the_command(
    command: list[str] | None, args: list[str] | None, name: str
) -> None:
    assert name == found(command, args)


def test_what_the_user_says_counts_when_the_command_says_nothing() -> None:
    assert "sglang" == found(["run"], explicit="sglang")


def test_what_the_user_says_decides_between_two() -> None:
    both = ["python3 -m dynamo.vllm; python3 -m dynamo.sglang"]
    assert "vllm" == found(args=both, explicit="vllm")
    assert found(args=both).startswith("could not determine backend framework: multiple")


def test_a_contradiction_is_a_problem() -> None:
    assert "backend framework mismatch" in found(PYTHON, explicit="trtllm")


@pytest.mark.parametrize("component_type", ["frontend", "planner", "", "router"])
def test_only_workers_have_one(component_type: str) -> None:
    assert NOOP == found(PYTHON, explicit="vllm", component_type=component_type)


@pytest.mark.parametrize("component_type", ["worker", "prefill", "decode"])
def test_every_sort_of_worker_has_one(component_type: str) -> None:
    assert "vllm" == found(PYTHON, component_type=component_type)


def test_a_framework_that_nobody_knows_is_a_problem() -> None:
    assert 'unknown backend framework "tgi" (expected sglang, vllm, trtllm)' == found(
        explicit="tgi"
    )


_SPACE = r"[\t\n\f\r ]"
REFERENCE = {
    name: re.compile(rf"python[0-9.]*{_SPACE}+[^|&;]*-m{_SPACE}+[^|&;]*dynamo\.{name}[^|&;]*")
    for name in NAMES
}
"""As the reference says it."""
STARTS = ("python ", "python3\n", "-m ", "-m\r", *(f"dynamo.{name}" for name in NAMES))
PIECES = [*STARTS, "python", "3", ".", "x", " ", "\v", "-m", "-", "dynamo.", "|", "&&", ";", *NAMES]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_it_is_found_where_the_pattern_of_the_reference_finds_it(command: str) -> None:
    expected = sorted(name for name, pattern in REFERENCE.items() if pattern.search(command))
    match expected:
        case []:
            assert NOOP == found(args=[command])
        case [name]:
            assert name == found(args=[command])
        case _:
            assert f"detected from command: [{' '.join(expected)}]" in found(args=[command])


@pytest.mark.parametrize("text", ["python -m ", "python ", "-m ", "python3", "python -m dynamo."])
def test_a_long_command_is_read_in_time_that_grows_like_its_length(text: str) -> None:
    assert NOOP == found(args=[text * (65_536 // len(text))])
