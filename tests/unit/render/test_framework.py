"""Which inference framework a component runs."""

import pytest

from dynamo_operator.api.backends import NOOP
from dynamo_operator.api.framework import framework
from dynamo_operator.kube.kind import Object
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
    assert '"tgi" is no backend framework; use sglang, vllm, trtllm' == found(explicit="tgi")
