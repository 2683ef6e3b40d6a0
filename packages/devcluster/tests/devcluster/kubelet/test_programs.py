"""Which local program stands for a container, for each worker in examples/ too."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from devcluster.kubelet.programs import FRONTEND, LORA_WORKER, MOCKER, Runtime, invocation, program_of
from kube_runtime.types.meta import Object

EXAMPLES = Path(__file__).parents[5] / "examples"
RUNTIME = Runtime(Path("/venv/bin/python"), "1.6.1", Path("/model"), "")
SIMULATION = ("python", "simulation.py")


def containers() -> Iterator[tuple[str, Object]]:
    for file in sorted(EXAMPLES.glob("*.yaml")):
        for graph in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            for component in graph["spec"].get("components", ()):
                if component["type"] in ("worker", "prefill", "decode"):
                    (container,) = component["podTemplate"]["spec"]["containers"]
                    yield f"{file.stem}/{component['name']}", container


@pytest.mark.parametrize(
    ("name", "container"), [*containers()], ids=lambda it: it if isinstance(it, str) else ""
)
def test_the_mocker_stands_for_every_engine_of_the_examples(name: str, container: Object) -> None:
    program = program_of(container, {}, RUNTIME, SIMULATION)
    assert program is not None
    command = " ".join(program.command)
    assert command.startswith("/venv/bin/python -m dynamo.mocker --model-path /model --model-name Qwen/")
    assert ("--disaggregation-mode prefill" in command) == name.endswith("/Prefill")


def test_a_decode_worker_without_a_flag_is_known_by_its_label() -> None:
    labels = {"nvidia.com/dynamo-sub-component-type": "decode"}
    program = program_of({"command": ["python3", "-m", "dynamo.vllm"]}, labels, RUNTIME, SIMULATION)
    assert program is not None
    assert program.command[-2:] == ("--disaggregation-mode", "decode")


def test_a_script_is_read_and_never_run_by_a_shell() -> None:
    script = "python3 -m dynamo.vllm --model 'a b' \\\n --is-prefill-worker; touch /tmp/x"
    assert invocation({"command": ["/bin/sh", "-c"], "args": [script]}) is not None
    program = program_of({"command": ["/bin/sh", "-c"], "args": [script]}, {}, RUNTIME, SIMULATION)
    assert program is not None
    assert "a b" in program.command
    assert not {"sh", "-c", "touch"} & set(program.command)


def test_the_frontend_keeps_its_arguments() -> None:
    container = {"command": ["python3", "-m", FRONTEND], "args": ["--router-mode", "kv"]}
    program = program_of(container, {}, RUNTIME, SIMULATION)
    assert program is not None
    assert program.command == ("/venv/bin/python", "-m", FRONTEND, "--router-mode", "kv")


def test_flags_that_mean_the_same_reach_the_mocker() -> None:
    container = {"args": ["-m", MOCKER, "--speedup-ratio=10", "--endpoint", "dyn://x"]}
    program = program_of(container, {}, RUNTIME, SIMULATION)
    assert program is not None
    assert program.command[-2:] == ("--speedup-ratio", "10")


@pytest.mark.parametrize(
    "container",
    [
        {},
        {"command": ["python3", "-m", "planner_sla"]},
        {"command": ["sh", "-c", "echo '"]},
        {"args": ["-m"]},
    ],
)
def test_other_programs_are_not_run(container: Object) -> None:
    assert program_of(container, {}, RUNTIME, SIMULATION) is None


@pytest.mark.parametrize(
    "container",
    [
        {"args": ["-m", "dynamo.vllm", "--enable-lora", "--model", "m"]},
        {
            "args": ["-m", "dynamo.vllm", "--model", "m"],
            "env": [{"name": "DYN_LORA_ENABLED", "value": "true"}],
        },
    ],
)
def test_a_worker_with_loras_is_one_that_takes_them(container: Object) -> None:
    program = program_of(container, {}, RUNTIME, SIMULATION)
    assert program is not None
    assert program.command == ("/venv/bin/python", str(LORA_WORKER), "/model", "m")
