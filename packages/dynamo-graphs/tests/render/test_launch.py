"""Where our flags land in a command that a user wrote."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.plan import Fragment, Part, Reference, in_script, with_flags

PLAIN: list[Part] = ["--rank", "0"]
LATE: list[Part] = ["--rank", Reference(Fragment("$((N + 1))"))]


@pytest.mark.parametrize(
    "program", ["python", "python3", "python3.12.1", "/opt/x/python3.11", "/usr/bin/python"]
)
def test_a_python_program_gets_them_as_arguments(program: str) -> None:
    container = {"command": [program, "-m", "dynamo.sglang"], "args": ["--tp", "16"]}
    assert {**container, "args": ["--tp", "16", "--rank", "0"]} == with_flags(
        container, PLAIN, "sglang"
    )


def test_a_program_goes_through_a_shell_when_only_a_shell_knows_a_value() -> None:
    container = {"command": ["python3", "-m", "dynamo.sglang"], "args": ["--x", '{"a": 1}']}
    script = "exec python3 -m dynamo.sglang --x '{\"a\": 1}' --rank $((N + 1))"
    assert {"command": ["sh", "-c"], "args": [script]} == with_flags(container, LATE, "sglang")


def test_a_wrapped_program_is_a_program() -> None:
    container = {"command": ["numactl", "-m", "0", "python3", "-m", "dynamo.sglang"]}
    assert ["--rank", "0"] == with_flags(container, PLAIN, "sglang")["args"]


@pytest.mark.parametrize("program", ["python-config", "pythonx", "python3 ", "/opt/own"])
def test_another_program_is_left_alone(program: str) -> None:
    container = {"command": [program], "args": ["--own"]}
    assert container == with_flags(container, LATE, "sglang")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("python3 -m dynamo.vllm", "python3 -m dynamo.vllm F"),
        ("python3 -m dynamo.vllm --a b", "python3 -m dynamo.vllm F --a b"),
        ("cd /w && python3 -m dynamo.vllm 2>&1 | tee l", "cd /w && python3 -m dynamo.vllm F 2>&1 | tee l"),
        ("python3 -m dynamo.vllm;date", "python3 -m dynamo.vllm F;date"),
        ("python3 -m dynamo.vllm --model /m/vllm-x --b", "python3 -m dynamo.vllm --model /m/vllm-x F --b"),
        ("python -m dynamo.vllm & python3 vllm", "python -m dynamo.vllm F & python3 vllm F"),
        ("python3 -m other", "python3 -m other"),
    ],
)  # fmt: skip
def test_in_a_script_they_stand_behind_the_framework(script: str, expected: str) -> None:
    container = {"command": ["/bin/sh", "-c"], "args": [script]}
    assert [expected] == with_flags(container, ["F"], "vllm")["args"]


def test_only_the_first_argument_that_starts_the_framework_is_changed() -> None:
    container = {
        "command": ["sh", "-c"],
        "args": ["date", "python3 -m dynamo.vllm", "python3 vllm"],
    }
    expected = ["date", "python3 -m dynamo.vllm F", "python3 vllm"]
    assert expected == with_flags(container, ["F"], "vllm")["args"]


REFERENCE = re.compile(r"(python[0-9.]*[\t\n\f\r ]+[^|&;]*vllm[^|&;]*?)([\t\n\f\r ]|\Z|[|&;])")
"""As the reference says it."""
PIECES = [
    "python ",
    "python",
    "3",
    ".",
    "x",
    " ",
    "\n",
    "\v",
    "-m ",
    "dynamo.",
    "vllm",
    "|",
    "&",
    ";",
]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_they_stand_where_the_pattern_of_the_reference_puts_them(script: str) -> None:
    expected = REFERENCE.sub(lambda found: f"{found[1]} F{found[2]}", script)
    assert expected == in_script(script, ["F"], "vllm")


@pytest.mark.parametrize("text", ["python ", "python -m ", "python3", "vllm "])
def test_a_long_script_is_changed_in_time_that_grows_like_its_length(text: str) -> None:
    script = text * 200_000
    assert script == in_script(script, ["F"], "vllm")
