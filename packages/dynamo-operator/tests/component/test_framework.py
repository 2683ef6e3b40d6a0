"""Which inference framework a component runs."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.api import FRAMEWORKS, NOOP
from dynamo_operator.component.framework import framework, several_flags, started
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.names import GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import a_component, a_graph

PYTHON = ["python3", "-m", "dynamo.vllm"]


def found(
    command: list[str] | None = None,
    args: list[str] | None = None,
    explicit: str | None = None,
    component_type: str = "worker",
) -> str:
    main: Object = {"image": "x", "command": command, "args": args}
    component = a_component(
        componentType=component_type, extraPodSpec={"mainContainer": main}, backendFramework=explicit
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
def test_the_framework_is_detected_from_the_command(
    command: list[str] | None, args: list[str] | None, name: str
) -> None:
    assert name == found(command, args)


def test_a_declared_framework_wins_unless_it_contradicts_the_command() -> None:
    assert "sglang" == found(["run"], explicit="sglang")
    both = ["python3 -m dynamo.vllm; python3 -m dynamo.sglang"]
    assert "vllm" == found(args=both, explicit="vllm")
    assert found(args=both).startswith("could not determine backend framework: multiple")
    assert "backend framework mismatch" in found(PYTHON, explicit="trtllm")
    assert f'unknown backend framework "tgi" (expected {", ".join(FRAMEWORKS)})' == found(explicit="tgi")


def test_only_workers_have_a_backend_framework() -> None:
    sorts = ("worker", "prefill", "decode", "frontend", "planner", "", "router")
    seen = [found(PYTHON, explicit="vllm", component_type=each) for each in sorts]
    assert ["vllm"] * 3 + [NOOP] * 4 == seen


_SPACE = r"[\t\n\f\r ]"
REFERENCE = {
    name: re.compile(rf"python[0-9.]*{_SPACE}+[^|&;]*-m{_SPACE}+[^|&;]*dynamo\.{name}[^|&;]*")
    for name in FRAMEWORKS
}
"""As the reference says it."""
STARTS = ("python ", "python3\n", "-m ", "-m\r", *(f"dynamo.{name}" for name in FRAMEWORKS))
PIECES = [*STARTS, "python", "3", ".", "x", " ", "\v", "-m", "-", "dynamo.", "|", "&&", ";", *FRAMEWORKS]


@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_the_backend_framework_is_detected_as_by_the_go_operator(command: str) -> None:
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


SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="dynamo")


def containers(service: Object, framework: str = "", *, on_grove: bool = False) -> list[dict[str, Any]]:
    """The main containers of a graph with this one service, leader first."""
    graph = a_graph({"W": service}, **({"backendFramework": framework} if framework else {}))
    graph = on_provider(graph, GROVE) if on_grove else graph
    assert () == graph_problems(graph, SETTINGS)
    found: list[dict[str, Any]] = []
    for each in graph_tree(graph, Facts(lws_served=True, grove_served=on_grove), SETTINGS):
        if each["kind"] == "Deployment":
            found.append(each["spec"]["template"]["spec"]["containers"][-1])
        elif each["kind"] == "LeaderWorkerSet":
            group = each["spec"]["leaderWorkerTemplate"]
            for side in ("leaderTemplate", "workerTemplate"):
                found.append(group[side]["spec"]["containers"][-1])
        elif each["kind"] == "PodCliqueSet":
            cliques = each["spec"]["template"]["cliques"]
            found += [clique["spec"]["podSpec"]["containers"][-1] for clique in cliques]
    return found


def worker(main: Object, **more: Any) -> Object:
    return {"componentType": "worker", "extraPodSpec": {"mainContainer": {"image": "i:1", **main}}} | more


NODES: Object = {"multinode": {"nodeCount": 2}, "resources": {"limits": {"gpu": "8"}}}


def test_a_startup_probe_of_numbers_lies_over_the_default() -> None:
    (found,) = containers(worker({"startupProbe": {"initialDelaySeconds": 180}}))
    assert {
        "httpGet": {"path": "/live", "port": "system"},
        "initialDelaySeconds": 180,
        "periodSeconds": 10,
        "timeoutSeconds": 5,
        "failureThreshold": 720,
    } == found["startupProbe"]


def test_a_startup_probe_of_numbers_needs_a_default() -> None:
    main = {"image": "i:1", "startupProbe": {"initialDelaySeconds": 180}}
    graph = a_graph({"F": {"componentType": "frontend", "extraPodSpec": {"mainContainer": main}}})
    (problem,) = graph_problems(graph, SETTINGS)
    assert problem.path.endswith("startupProbe")


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_flags_without_a_command_start_the_engine_of_the_graph(framework: str) -> None:
    (found,) = containers(worker({"args": ["--model", "m"]}), framework)
    assert (["python3", "-m", f"dynamo.{framework}"], ["--model", "m"]) == (found["command"], found["args"])


def test_flags_without_a_command_start_the_engine_on_several_nodes() -> None:
    leader, other = containers(worker({"args": ["--model", "m"]}, **NODES), "sglang")
    assert "exec python3 -m dynamo.sglang --model m --dist-init-addr" in other["args"][0]
    assert ["python3", "-m", "dynamo.sglang"] == leader["command"]


@pytest.mark.parametrize(
    ("main", "framework"),
    [
        ({"args": ["--model", "m"]}, ""),
        ({"args": ["python3 -m dynamo.vllm --model m"]}, "vllm"),
        ({"args": ["-e", "python3 -m dynamo.vllm"]}, "vllm"),
        ({"command": ["/bin/sh", "-c"], "args": ["--model", "m"]}, "vllm"),
        ({"command": ["run"], "args": ["--model", "m"]}, "vllm"),
        ({}, "vllm"),
    ],
)
def test_other_commands_and_arguments_are_not_changed(main: Object, framework: str) -> None:
    (found,) = containers(worker(main), framework)
    assert main.get("command", ["/bin/sh", "-c"]) == found["command"]
    assert main.get("args") == found.get("args")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--router-mode", "kv"], ["-m", "dynamo.frontend", "--router-mode", "kv"]),
        (["--http-port=8000"], ["-m", "dynamo.frontend", "--http-port=8000"]),
        (["-m", "dynamo.frontend", "--x"], ["-m", "dynamo.frontend", "--x"]),
        (["-u", "-m", "own"], ["-u", "-m", "own"]),
        (["--version"], ["--version"]),
        (["own.py"], ["own.py"]),
    ],
)
def test_flags_of_a_frontend_are_for_the_frontend(args: list[str], expected: list[str]) -> None:
    assert expected == started("frontend", "noop", {"args": args})["args"]
    chosen = {"command": ["python3"], "args": args}
    assert chosen == started("frontend", "noop", chosen)


FLAGS = "--model $MODEL --tensor-parallel-size 16 --config '{\"a\": 1}'"


@pytest.mark.parametrize("on_grove", [False, True])
@pytest.mark.parametrize(
    ("framework", "expected"),
    [
        ("vllm", f"python3 -m dynamo.vllm {FLAGS} --distributed-executor-backend ray"),
        ("sglang", f"exec python3 -m dynamo.sglang {FLAGS} --dist-init-addr "),
    ],
)
def test_one_argument_with_several_flags_is_as_many(framework: str, expected: str, *, on_grove: bool) -> None:
    service = worker({"command": ["python3", "-m", f"dynamo.{framework}"], "args": [FLAGS]}, **NODES)
    leader, _ = containers(service, framework, on_grove=on_grove)
    assert expected in leader["args"][0]


def test_trtllm_gets_them_inside_the_quotes_of_its_launcher() -> None:
    service = worker({"command": ["python3", "-m", "dynamo.trtllm"], "args": ["--a b --c d"]}, **NODES)
    leader, _ = containers(service, "trtllm")
    assert "bash -c 'trtllm-llmapi-launch python3 -m dynamo.trtllm --a b --c d'" in leader["args"][0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--a b --c d", "--a b --c d"),
        ("--a b", "--a b"),
        ("--a=b --c=d", "--a=b --c=d"),
        ("-tp 2 --model x", "-tp 2 --model x"),
        ("  --a b \\\n  --c d \\\n", "--a b \\\n  --c d"),
        ("--host $(POD_IP) --x ${Y} --z $Z", "--host $(POD_IP) --x ${Y} --z $Z"),
        ("--a '&;|' --b \"(x)\" --c y#z", "--a '&;|' --b \"(x)\" --c y#z"),
        *dict.fromkeys(
            [
                "--a",
                "--a=b c",
                '--json={"a": 1}',
                "a --b c",
                "- a --b",
                "--a b; touch /x",
                "--a b & c",
                "--a b | c",
                "--a b > c",
                "--a $(id -u) --b c",
                "--a `id` --b c",
                "--a b # --c",
                "--a b\ntouch /x",
                "--a it's --b",
                '--a "b --c',
                "--a b --c \\\\\\",
                "",
            ],
            "",
        ).items(),
    ],
)
def test_several_flags_are_told_from_one_and_from_what_a_shell_would_read_otherwise(
    text: str, expected: str
) -> None:
    assert expected == several_flags(text)


@pytest.mark.parametrize("piece", ["'", '"', "\\", "--a ", "$(", "#", " ", "$", "a$(b)", "''", '"\\"'])
def test_a_long_argument_takes_time_that_grows_like_its_length(piece: str) -> None:
    began = time.process_time()
    several_flags("--a b " + piece * (1_000_000 // len(piece)) + "\n;")
    assert time.process_time() - began < 2
