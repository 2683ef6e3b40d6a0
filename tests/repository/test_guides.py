"""What the guides show exists: fields, code that runs; and on all pages commands and their options."""

import ast
import itertools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dynamo_operator.process.flags import read_settings
from dynamoctl.main import app
from dynamoctl.options import in_order
from kube_runtime.commandline import execute
from kube_runtime.types.meta import Object

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs/guides").glob("*.md"))
PAGES = [
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples/README.md"),
    *sorted((ROOT / "docs").glob("*.md")),
    *GUIDES,
]
SHOWN = [
    *GUIDES,
    *(ROOT / f"docs/{page}.md" for page in ("admission", "own-model", "rollouts", "runtime", "settings")),
]
"""Pages whose examples are tried here. Those of other pages have a test of their own."""
COMMAND = re.compile(r"^ *(?:[$#] )?(?:\.venv/bin/)?dynamoctl (\S.*)$", re.MULTILINE)
FENCE = re.compile(r"^ *```(\w+)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
GRAPH_HEAD = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment"}
WORKER = {"name": "Worker"}
CONTAINER = {
    "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0",
    "command": ["python3", "-m", "dynamo.vllm"],
    "args": ["--model=Qwen/Qwen3-0.6B", "--tensor-parallel-size=16"],
}


def fenced(language: str) -> Iterator[tuple[str, str]]:
    for page in SHOWN:
        for found, text in FENCE.findall(page.read_text(encoding="utf-8")):
            if found == language:
                yield page.stem, text


def a_graph(part: Object) -> Object | None:
    """The graph around a part of one; None if it is a part of something else."""
    if "env" in part:
        container = {"name": "main", **part}
        part = {"components": [{"name": "Worker", "podTemplate": {"spec": {"containers": [container]}}}]}
    if "components" in part:
        part = {"spec": part}
    if not part.keys() <= {"metadata", "spec"}:
        return None
    components = [whole(component) for component in part.get("spec", {}).get("components", [WORKER])]
    metadata = {"name": "chat", **part.get("metadata", {})}
    return {**GRAPH_HEAD, "metadata": metadata, "spec": {**part.get("spec", {}), "components": components}}


def whole(component: Object) -> Object:
    """The component with a type, and with a container that runs an engine."""
    template: Object = component.get("podTemplate", {})
    pod: Object = template.get("spec", {})
    containers = [{**CONTAINER, **container} for container in pod.get("containers", [{"name": "main"}])]
    template = {**template, "spec": {**pod, "containers": containers}}
    return {"type": "worker", **component, "podTemplate": template}


@pytest.mark.parametrize(("page", "text"), list(fenced("yaml")))
def test_a_part_of_a_graph_is_valid_in_a_graph(
    page: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = a_graph(yaml.safe_load(text))
    file = tmp_path / "graph.yaml"
    file.write_text(yaml.safe_dump(graph) if graph else text)
    if page == "settings":
        read_settings({}, file=file, environment={})
    if graph is None:
        assert page in ("admission", "gateway", "settings"), "pages with other objects"
        return
    execute(app(), ["lint", str(file)])  # which exits if there is a problem
    assert "warning" not in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_command_lines_are_understood(page: Path) -> None:
    shown = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in COMMAND.findall(shown):
        words = shlex.split(line, comments=True)
        given = list(itertools.takewhile(lambda word: word not in ("|", ">", "&"), words))
        _, bound, unknown, _ = app().parse_known_args(in_order(app(), given))
        assert ([], True) == (unknown, bool(bound)), line
    text = FENCE.sub("", page.read_text(encoding="utf-8")).replace("There is no `dynamoctl describe`", "")
    assert set(re.findall(r"`dynamoctl ([a-z-]+)", text)) <= set(app()), "in a sentence"


@pytest.mark.parametrize(("page", "text"), list(fenced("python")))
def test_the_code_runs(page: str, text: str) -> None:
    code = compile(text, page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if page != "runtime":  # which shows a part of a function
        exec(code, {})  # noqa: S102
