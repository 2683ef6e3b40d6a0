"""The page of the profiler is correct: its commands work, its tables are those of the code."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dynamo_profiler.configuration import configuration
from dynamo_profiler.gpus import GPUS
from dynamo_profiler.refusal import Refusal
from dynamoctl.main import app
from kube_runtime.commandline.application import execute

PAGE = (Path(__file__).parents[3] / "docs/profiler.md").read_text(encoding="utf-8")
FOUND = "/tmp/found"  # noqa: S108 - what the page says; a folder of the test's own takes its place


def commands() -> list[list[str]]:
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    return [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]


def test_the_commands_work_in_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (make, *rest) = commands()
    assert ["mkdir", "-p", FOUND] == make
    for program, *args in rest:
        assert "dynamoctl" == program
        execute(app(), [each.replace(FOUND, str(tmp_path)) for each in args])
    printed = capsys.readouterr().out
    assert "Done: " in printed
    assert "kind: Deployment" in printed


def test_the_gpus_are_those_of_the_code() -> None:
    rows = re.findall(r"\| `(\w+)` \| (\d+) \| (\d+) \| (\d+) \|", PAGE)
    assert {
        name: (each.flops / 1e12, each.memory_bytes / 1e9, each.bytes_per_second / 1e9)
        for name, each in GPUS.items()
    } == {name: tuple(map(float, numbers)) for name, *numbers in rows}


def test_each_key_of_the_page_is_read() -> None:
    """A value of the wrong type is refused with the key's name, so the key is read."""
    table = PAGE.partition("## Configuration")[2].partition("## How it chooses")[0]
    sections = "sla|hardware|sweep|engine|deployment"
    keys = re.findall(rf"`(?:{sections})\.\w+`", table)
    own = table.partition("The keys in `analytic`")[2]
    keys += [f"`analytic.{each}`" for each in re.findall(r"^\| `(\w+)` ", own, re.MULTILINE)]
    assert 20 <= len(keys)
    for key in keys:
        section, _, name = key.strip("`").partition(".")
        wrong: Any = {section: {name: [1]}}
        document = {"engine": {"backend": "vllm"}, "deployment": {"model": "a/8B"}}
        document[section] = {**document.get(section, {}), **wrong[section]}
        with pytest.raises(Refusal, match=rf"^{section}\.{name} must be "):
            configuration(document)
