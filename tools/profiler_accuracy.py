"""Writes docs/profiler-accuracy.md: each measured point, and what the formulas say of it."""

import csv
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from dynamo_profiler.gpus import GPUS
from dynamo_profiler.shape import Shape, shape_of
from dynamo_profiler.timing import Engine

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "profiler-accuracy.md"
MEASURED = ROOT / "packages" / "dynamo-profiler" / "tests" / "measured"
LLAMA_70B = {
    "num_hidden_layers": 80,
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "intermediate_size": 28672,
    "vocab_size": 128256,
    "quantization_config": {"quant_method": "fp8", "bits": 8},
}
"""Fields of the model's `config.json`, as published."""
HEAD = """\
# How near the analytic profiler is to measurements

<!-- Written by `make docs` from the tables in packages/dynamo-profiler/tests/measured. -->

The tables are sweeps of one engine of vLLM 0.10.1.1 with Llama-3.3-70B-Instruct-FP8 on H100 SXM, published
with Dynamo as the interpolation data of its planner. A prefill is one prompt at a time. A decode is a burst
of as many requests as the table has, with answers of 500 tokens.

The five constants of the [formulas](profiler.md#the-formulas) are fitted to these points, so the errors below
are those of a fit. Fits that leave one size of engine out show how well they predict another one:

| size left out | first token, predicted as a part of measured | between tokens, the same |
|---|---|---|
| 8 GPUs | median 1.02 | median 0.95, from 0.77 to 1.05 |
| 4 GPUs | median 1.01 | median 1.01, from 0.81 to 1.13 |
| 2 GPUs | median 0.97 | median 1.04, from 0.89 to 1.29 |

Another model or another type of GPU is a larger step than another number of GPUs. No table here shows the
error of that step. Neither is a length outside of the measured ones safe: without the prompts of more than
5,000 tokens the fit is off by 14 % at the median for these, without the shorter ones by 31 %. One measured
point, the prompt of 6205 tokens on 8 GPUs, takes twice as long as its neighbors suggest.

"""


class Point(NamedTuple):
    """One measurement and its prediction. Units: milliseconds."""

    what: str
    gpus: int
    load: str
    measured: float
    predicted: float

    @property
    def ratio(self) -> float:
        """The prediction, as a part of what was measured."""
        return self.predicted / self.measured


def points() -> Iterator[Point]:
    """All measured points, in the order of the tables."""
    shape = shape_of("nvidia/Llama-3.3-70B-Instruct-FP8", LLAMA_70B, None)
    for row in _rows("prefill"):
        engine, tokens = _engine(shape, row), int(row["isl_tokens"])
        seconds = engine.first_token_seconds(tokens)
        what = "time to the first token"
        yield Point(what, engine.gpus, f"{tokens}", float(row["ttft_ms"]), 1000 * seconds)
    for row in _rows("decode"):
        engine, context = _engine(shape, row), int(row["context_tokens"])
        answers = max(1, round(float(row["kv_usage"]) * int(row["max_kv_tokens"]) / context))
        seconds = engine.burst_seconds(answers, context)
        load = f"{answers} x {context}"
        yield Point("time between tokens", engine.gpus, load, float(row["itl_ms"]), 1000 * seconds)


def page() -> str:
    """The page."""
    found = list(points())
    lines = ["## Errors", "", "| | GPUs | points | median ratio | least | most | median error |"]
    lines.append("|---|---|---|---|---|---|---|")
    for what, gpus in dict.fromkeys((each.what, each.gpus) for each in found):
        ratios = [each.ratio for each in found if (each.what, each.gpus) == (what, gpus)]
        error = 100 * median(abs(each - 1) for each in ratios)
        figures = f"{median(ratios):.2f} | {min(ratios):.2f} | {max(ratios):.2f} | {error:.0f} %"
        lines.append(f"| {what} | {gpus} | {len(ratios)} | {figures} |")
    lines += [
        "",
        "## All points",
        "",
        "The load is the length of the prompt, or the number of requests and their context.",
    ]
    lines += [
        "",
        "| | GPUs | load, tokens | measured, ms | predicted, ms | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for each in found:
        figures = f"{each.measured:.1f} | {each.predicted:.1f} | {each.ratio:.2f}"
        lines.append(f"| {each.what} | {each.gpus} | {each.load} | {figures} |")
    return HEAD + "\n".join(lines) + "\n"


def _rows(table: str) -> list[dict[str, str]]:
    (file,) = MEASURED.glob(f"*-{table}.csv")
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _engine(shape: Shape, row: dict[str, str]) -> Engine:
    return Engine(shape, GPUS[row["gpu"]], int(row["tp"]))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
