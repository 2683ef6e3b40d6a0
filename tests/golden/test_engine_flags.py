"""The programs of Dynamo accept every command line that we render or generate.

The options of their parsers are recorded from the wheels of the releases (`python tools/engine_flags.py`).

Not parsed, as no wheel of Dynamo has their parsers: `ray start`, `mpirun` and `sshd` around the programs of a
group, the endpoint picker (Go), and what users run instead of Dynamo. `wait_for_leader.py` is ours and has
its own tests. TensorRT-LLM's own options are in files, not in arguments.
"""

import argparse
import json
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import yaml

from dynamo_graphs.engines import ENGINES, RELEASE, Role
from dynamo_graphs.graph import Graph
from dynamo_graphs.objects import Backend
from dynamo_graphs.offline import expanded, installed_settings
from dynamo_operator.shared.cluster import Facts
from dynamo_profiler.base import BACKENDS, base_graph
from dynamo_profiler.engine import Layout
from kube_runtime.types.meta import Object
from kubelet import command_line
from specs.invariants import PLACE, containers_of

HERE = Path(__file__).parent
EXAMPLES = sorted((HERE.parents[1] / "examples").glob("**/*.yaml"))
GOLDEN = sorted((HERE / "cases").glob("*/objects.yaml"))
RECORDED = json.loads((HERE / "engine_flags.json").read_text("utf-8"))
NEWEST = "1.6.1"
REFUSED_BY_THE_NEWEST = {
    ("dynamo.vllm", "unrecognized arguments: --is-prefill-worker"),
    ("planner_sla", "no such program"),
}
REFUSED_BY_ALL = {
    ("dynamo.router", "no such program"),  # without options in its case
    ("dynamo.vllm", 'unrecognized arguments: --override-config {"a b": 1}'),  # a test of quoting
}
SETTINGS = installed_settings()
_ARITHMETIC = re.compile(r"\$\(\(.*?\)\)(?!\))")
_PYTHON = re.compile(r"(.*/)?python[0-9.]*")
_END = re.compile(r"[|&;()<>]+")


class Line(NamedTuple):
    """What starts a program of Dynamo, such as `dynamo.vllm`, and its arguments."""

    program: str
    args: tuple[str, ...]


def lines(words: Sequence[str]) -> Iterator[Line]:
    """The starts of programs in a command line, and in the scripts that are arguments of it."""
    words = list(words)
    for index, (option, program) in enumerate(pairwise(words)):
        if option == "-m" and index and _PYTHON.fullmatch(words[index - 1]):
            rest = words[index + 2 :]
            ends = (place for place, word in enumerate(rest) if _END.fullmatch(word))
            yield Line(program, tuple(rest[: next(ends, len(rest))]))
    for word in words:
        if " -m " in word:
            script = shlex.shlex(_ARITHMETIC.sub("0", word), posix=True, punctuation_chars="|&;<>")
            script.whitespace_split, script.commenters = True, ""
            yield from lines(list(script))


def rendered(document: Object) -> set[Line]:
    """The starts of programs in what comes of a graph, under each orchestrator."""
    both = (Facts(lws_served=True), Facts(lws_served=True, grove_served=True))
    objects = [expanded(document, facts, SETTINGS) for facts in both]
    assert not [problem for each in objects for problem in each.problems]
    return {
        line
        for each in objects
        for container in containers_of(each.objects)
        for line in lines(command_line(container, PLACE))
    }


class Parser(argparse.ArgumentParser):
    """The parser of a program, made of its recorded options."""

    def __init__(self, options: list[dict[str, Any]]) -> None:
        # An option of Dynamo replaces the engine's of the same name, as there.
        super().__init__(add_help=False, conflict_handler="resolve")
        for number, option in enumerate(reversed(options)):
            values, choices = option["values"], option.get("choices")
            details: dict[str, Any] = {"action": "store_true"}
            if values != 0:
                details = {"nargs": None if values == 1 else values, "choices": choices}
            self.add_argument(*option["flags"], dest=f"option{number}", **details)

    def error(self, message: str) -> Any:
        raise ValueError(message)


@cache
def parser(release: str, program: str) -> Parser | None:
    options = RECORDED[release].get(program)
    return Parser(options) if options else None


def refusal(release: str, line: Line) -> str:
    """What the program answers to its arguments; "" if it accepts them."""
    if (parses := parser(release, line.program)) is None:
        return "no such program"
    # vLLM's parser accepts underscores.
    args = [each.replace("_", "-") if each.startswith("--") else each for each in line.args]
    try:
        parses.parse_args(args)
    except ValueError as error:
        return str(error)
    return ""


def library_graphs() -> Iterator[Object]:
    """Graphs of the library, with every engine, role and size."""
    for backend, role, lora, gpus, nodes in product(
        get_args(Backend), get_args(Role), (False, True), (1, 8), (1, 2)
    ):
        graph = Graph("g", namespace="n").frontend(routing="kv", backend=backend)
        graph = graph.worker(model="m", role=role, backend=backend, lora=lora, gpus=gpus, nodes=nodes)
        yield graph.planner(backend=backend).to_dict("v1alpha1")


def profiler_graphs() -> Iterator[Object]:
    """Graphs of the profiler, with the largest layout."""
    for backend, is_disaggregated in product(BACKENDS.values(), (False, True)):
        graph = base_graph(backend, "g", "", is_disaggregated=is_disaggregated)
        for service in graph["spec"]["services"].values():
            main = service["extraPodSpec"]["mainContainer"]
            if service["componentType"] != "frontend":
                layout = Layout(tensor=8, pipeline=2, data=2)
                main["args"] = backend.with_layout(main["args"], layout)
        yield graph


def written_graphs() -> Iterator[Object]:
    """The examples."""
    for path in EXAMPLES:
        for document in yaml.safe_load_all(path.read_text("utf-8")):
            if document and document.get("kind") == "DynamoGraphDeployment":
                yield document


@pytest.fixture(scope="module")
def command_lines() -> set[Line]:
    graphs = (*written_graphs(), *library_graphs(), *profiler_graphs())
    return {line for graph in graphs for line in rendered(graph)}


def test_the_programs_of_our_release_accept_all(command_lines: set[Line]) -> None:
    engines = {f"dynamo.{name}" for name in ENGINES}
    programs = {line.program for line in command_lines}
    assert {"dynamo.frontend", "dynamo.mocker", "planner_sla", *engines} <= programs
    answers = {line: refusal(RELEASE, line) for line in command_lines}
    assert not {line: answer for line, answer in answers.items() if answer}


def test_what_the_newest_release_refuses(command_lines: set[Line]) -> None:
    """Images of that release need other flags for these."""
    answers = {(line.program, refusal(NEWEST, line)) for line in command_lines}
    assert REFUSED_BY_THE_NEWEST == {answer for answer in answers if answer[1]}


@pytest.mark.parametrize("case", GOLDEN, ids=lambda path: path.parent.name)
def test_a_release_accepts_each_command_line_of_a_golden_case(case: Path) -> None:
    """Some cases have the options of an older release, some those of a newer one."""
    for container in containers_of([*yaml.safe_load_all(case.read_text("utf-8"))]):
        words = command_line(container, PLACE)
        found = set(lines(words))
        assert len(found) >= (" -m dynamo." in " ".join(words)), words
        for line in found:
            answers = {(line.program, refusal(release, line)) for release in RECORDED}
            assert (line.program, "") in answers or answers & REFUSED_BY_ALL, (line, answers)


@pytest.mark.parametrize("release", RECORDED)
def test_an_unknown_option_is_refused(release: str) -> None:
    for program in RECORDED[release]:
        assert "unrecognized" in refusal(release, Line(program, ("--no-such-option=1",)))
