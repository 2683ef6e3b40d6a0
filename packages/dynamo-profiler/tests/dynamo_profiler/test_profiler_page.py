"""The page of the profiler is correct: its commands work, its formulas and keys are those of the code."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dynamo_profiler import Refusal
from dynamo_profiler.configuration import read_configuration
from dynamo_profiler.engine import FormulaEngine, Layout
from dynamo_profiler.shape import GPUS, HEAD_SIZE, Gpu, models, shape_of
from dynamoctl.main import app
from kube_runtime.commandline import execute

PAGE = (Path(__file__).parents[4] / "docs/profiler.md").read_text(encoding="utf-8")
FOUND = "/tmp/found"  # noqa: S108 - what the page says; a folder of the test's own takes its place


def commands() -> list[list[str]]:
    (block,) = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    return [shlex.split(line.removeprefix("$ ")) for line in block.splitlines()]


def test_the_commands_work_in_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (make, *rest) = commands()
    assert ["mkdir", "-p", FOUND] == make
    for program, *args in rest:
        assert "dynamoctl" == program
        execute(app(), [arg.replace(FOUND, str(tmp_path)) for arg in args])
    printed = capsys.readouterr().out
    assert "Done: " in printed
    assert "kind: Deployment" in printed


def test_a_target_that_is_too_strict_ends_with_what_would_be_possible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "such as `itl: 1`, it exits with 1" in PAGE
    _, (_, *args), _ = commands()
    strict = [arg.replace(FOUND, str(tmp_path)).replace("itl: 15", "itl: 1") for arg in args]
    with pytest.raises(SystemExit) as ended:
        execute(app(), strict)
    assert 1 == ended.value.code
    assert "sla.itl of 1 ms cannot be met: the fastest engine, " in capsys.readouterr().err


def test_a_name_alone_gives_the_shape_that_the_page_says() -> None:
    assert "(12·L·d² parameters, 128 times as wide as\ndeep, 8 heads in the cache)" in PAGE
    shape = shape_of("a/70B", None, None)
    assert 12 * shape.layers * shape.width**2 == pytest.approx(shape.parameters, rel=0.05)
    assert 128 * shape.layers == pytest.approx(shape.width, rel=0.05)
    assert 8 * HEAD_SIZE == shape.cache_width
    for name in re.findall(r"`(8B|125m|30B-A3B|8x7B)`", PAGE):
        assert shape_of(f"a/{name}", None, None).parameters > 0


FORMULAS = """\
F = g · peak · 0.48; twice that for parameters of 8 bits on GPUs with FP8
B = g · bandwidth · 0.9
x(n) = 8·L·n·d·(g-1)/g / (link · 0.33)
f = L · 91 µs
t(s) = max(2·P·s / F, W / B) + 2·L·d·s² / (g · peak · 0.33) + x(s) + f, where parameters in experts count 4 times
t(s) + 8.7 ms
s(b) = (W' + b·c·K) / B + 2·P·b / F + x(b) + f, where W' has min(1, b·P / all parameters) of the experts' bytes
(0.9 · g · memory - W) / K
itl = s(b); rate = b / (osl·s(b))
ttft = 8.7 ms + t·(1 + u/(2·(1-u))) + isl·K / (g · 50 GB/s); rate = u / t
itl = s(b) + b·t/osl; ttft = 8.7 ms + t·(1 + 0.2·√b) + s(b); rate = 1 / (osl·s(b)/b + t)
"""  # noqa: E501  as the page has them
"""The last three are executed by `test_choice.py`, with the engine's times."""


@pytest.mark.parametrize("model", ["a/8B", "a/70B-FP8", "a/30B-A3B", "mistralai/Mixtral-8x7B-Instruct-v0.1"])
@pytest.mark.parametrize("gpu", list(GPUS.values()), ids=lambda it: it.name)
@pytest.mark.parametrize("g", [1, 4])
def test_the_formulas_of_the_page_are_those_of_the_code(model: str, gpu: Gpu, g: int) -> None:
    page = PAGE.replace("\N{MINUS SIGN}", "-")
    assert [] == [line for line in FORMULAS.splitlines() if f"| {line} |" not in page]
    shape = models()[model].shape if model in models() else shape_of(model, None, None)
    engine = FormulaEngine(shape, gpu, Layout(g))
    layers, width = shape.layers, shape.width
    passed, stored, kept = shape.active, shape.weight_bytes, shape.cache_bytes_per_token
    is_doubled = gpu.has_fp8 and shape.bytes_per_parameter == 1
    computed = g * gpu.flops * 0.48 * (2 if is_doubled else 1)
    read = g * gpu.bytes_per_second * 0.9
    fixed = layers * 91e-6

    def exchanged(tokens: float) -> float:
        return 8 * layers * tokens * width * (g - 1) / g / (gpu.link_bytes_per_second * 0.33)

    def prefill(tokens: float) -> float:
        counted = passed + 3 * shape.active_routed
        attention = 2 * layers * width * tokens**2 / (g * gpu.flops * 0.33)
        most = max(2 * counted * tokens / computed, stored / read)
        return most + attention + exchanged(tokens) + fixed

    def step(answers: float, context: float) -> float:
        unread = shape.routed_bytes * (1 - min(1, answers * passed / shape.parameters))
        reading = (stored - unread + answers * context * kept) / read
        return reading + 2 * passed * answers / computed + exchanged(answers) + fixed

    for tokens in (100, 3000, 30_000):
        assert prefill(tokens) == pytest.approx(engine.prefill_seconds(tokens))
        assert prefill(tokens) + 0.0087 == pytest.approx(engine.first_token_seconds(tokens))
        assert tokens * kept / (g * 50e9) == pytest.approx(engine.transfer_seconds(tokens))
    for answers, context in ((1, 350), (7, 3250), (200, 8000)):
        assert step(answers, context) == pytest.approx(engine.step_seconds(answers, context))
    assert (0.9 * g * gpu.memory_bytes - stored) / kept == pytest.approx(engine.cache_tokens, abs=1)


def test_each_key_of_the_page_is_read() -> None:
    """A value of the wrong type is refused with the key's name, so the key is read."""
    table = PAGE.partition("## Configuration")[2].partition("## How it chooses")[0]
    sections = "sla|hardware|sweep|engine|deployment|online"
    keys = re.findall(rf"`(?:{sections})\.\w+`", table)
    own = table.partition("The keys in `analytic`")[2]
    keys += [f"`analytic.{entry}`" for entry in re.findall(r"^\| `(\w+)` ", own, re.MULTILINE)]
    assert 20 <= len(keys)
    for key in keys:
        section, _, name = key.strip("`").partition(".")
        wrong: Any = {section: {name: [1]}}
        document = {"engine": {"backend": "vllm"}, "deployment": {"model": "a/8B"}}
        document[section] = {**document.get(section, {}), **wrong[section]}
        with pytest.raises(Refusal, match=rf"^{section}\.{name} must be "):
            read_configuration(document)
