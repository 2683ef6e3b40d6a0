"""The page docs/profiler-accuracy.md: each measured point and its prediction by both engines of the profiler.

    python -m tools.profiler_accuracy --fit      fit the constants of the formulas again, and print them
    python -m tools.profiler_accuracy --record   record the kernels' times for each point

The kernels' times are in a table beside the measurements, because the kernels take 500 MB. To record them,
run `pip install './packages/dynamo-profiler[aiconfigurator]'`.
"""

import csv
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import NamedTuple

from dynamo_profiler import engine as timing
from dynamo_profiler.engine import Engine, FormulaEngine, Layout
from dynamo_profiler.kernels import KernelEngine, Kernels, kernel_source
from dynamo_profiler.shape import GPUS, models
from tools.markdown import table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "profiler-accuracy.md"
MEASURED = ROOT / "packages" / "dynamo-profiler" / "tests" / "measured"
RECORD = MEASURED / "kernels.csv"
PUBLISHED = MEASURED / "published.csv"
SWEEPS = "llama-3.3-70b-fp8-h100-vllm"
FIRST, BETWEEN = "time to the first token", "time between tokens"
FITTED = ("COMPUTE_EFFICIENCY", "ATTENTION_EFFICIENCY", "LINK_EFFICIENCY", "LAYER_SECONDS")
"""The fitted constants. The overhead of 8.7 ms is the remainder of the shortest prompts."""
SHARE = "share of the other prompts"
"""What one table contains beside steps; fitted with the constants, and no property of an engine."""
SWEEP_OUTPUT = 500
"""Output tokens of a request of a sweep. Source: a context of 350 tokens is a prompt of 100 in the tables."""
OF_THE_FIT = (
    "nvidia/Llama-3.1-70B-Instruct-FP8 on h100_sxm",
    "nvidia/Llama-3.1-70B-Instruct-FP8 on h200_sxm",
    "openai/gpt-oss-120b on h100_sxm",
)
"""Tables of served requests to which, beside the sweeps, the queueing of prompts, the share of experts and
the corrections of kernels are fitted."""

HEAD = """\
# How near the profiler is to measurements

<!-- Written by `make docs` from the tables in packages/dynamo-profiler/tests/measured. -->

The profiler has two [engines](profiler.md#engines): `formulas`, and `kernels`, the measured kernels of AI
Configurator. This page holds both against two kinds of tables:

- *Sweeps* of one engine of vLLM 0.10.1.1 with Llama-3.3-70B-Instruct-FP8 on H100 SXM, published with Dynamo
  as the interpolation data of its planner. A prefill is one prompt at a time, a decode a number of requests
  with answers of 500 tokens. Predicted is the plain step of decode.
- *Served* requests: so many at once, each followed by the next. These rows are from `silicon_sample.csv` of
  the package `aiconfigurator-core` 0.12.0 (Apache-2.0); the source of each is its `id` there. Of each model
  and GPU at most 16 rows are taken, evenly from the sorted ones of engines with tensor parallelism
  alone. Rows whose requests do not fit the cache at once, or are more than 256, measure a queue and are not
  taken.

Tables that are marked as fitted gave constants; the others were left out of every fit. In one measured point
of the sweeps, the prompt of 6205 tokens on 8 GPUs takes twice as long as its neighbors suggest. Engines of
several nodes, copies of attention and quantised caches have no table here: their errors are unknown.

"""


PROMISE = """\
## What such a fit cannot promise

- **The constants are those of one model, one GPU and one version of one engine.** Another precision or
  other kernels move them. The rows that were left out show by how much: their medians differ from table
  to table by more than the fit's own error.
- **A sweep does not say what it contains.** The times between tokens of this one grow as if each answer
  waited for half of the other prompts. With that part the constants fit it; without it the plain step is
  too short, most at long contexts. Another sweep of this kind was reported to have no such part: there
  the plain step is right, and the sum 40 % too long. So the part belongs to how a table was measured. It
  is in the fit, to keep it out of the constants, and in no prediction: curves for the planner and
  simulated engines are plain steps.
- **A fit to the plain step alone would be worse.** It takes the prompts for time that each layer needs:
  it is then too slow by 40 % between tokens for the rows that were left out, and still misses this table
  by 20 %.
- **Nothing here is about** prefix caching, speculative decoding, several nodes or quantised caches.

So for a model, GPU or engine that is not in the table, a prediction tells candidates to measure, not the
times that users will see.
"""


class Point(NamedTuple):
    """One measurement and its predictions. Units: milliseconds."""

    table: str
    metric: str
    gpus: int
    load: str
    measured: float
    formulas: float
    kernels: float
    source: str = ""

    @property
    def ratio(self) -> float:
        """The formulas' prediction as a share of the measurement."""
        return self.formulas / self.measured

    @property
    def kernel_ratio(self) -> float:
        """The kernels' prediction as a share of the measurement."""
        return self.kernels / self.measured


class Recorded:
    """The recorded kernels of one engine."""

    def __init__(self, rows: Iterable[dict[str, str]]) -> None:
        self._answers = {
            (row["kind"], int(row["count"]), int(row["tokens"])): float(row["ms"]) for row in rows
        }

    def predict_prefill_latency(self, bs: int, isl: int) -> float:
        """The time of one pass over `bs` prompts. Units: milliseconds."""
        return self._answers["prefill", bs, isl]

    def decode_step_latency(self, gen_tokens: int, isl: int, osl: int) -> float:  # noqa: ARG002  as theirs
        """The time of one token for each of `gen_tokens` requests. Units: milliseconds."""
        return self._answers["step", gen_tokens, isl]


Find = Callable[[str, str, str, int], Kernels]


@cache
def recorded() -> Find:
    """A function that finds the recorded kernels of a model, GPU, backend and tensor parallel size."""
    by_engine: dict[tuple[str, str, str, int], list[dict[str, str]]] = {}
    for row in _rows(RECORD):
        key = (row["model"], row["gpu"], row["backend"], int(row["tp"]))
        by_engine.setdefault(key, []).append(row)
    made = {key: Recorded(rows) for key, rows in by_engine.items()}
    return lambda model, gpu, backend, tensor: made[model, gpu, backend, tensor]


def all_points(find: Find | None = None) -> Iterator[Point]:
    """All measured points, in the order of the tables."""
    kernels_of = find or recorded()
    yield from _sweeps(kernels_of)
    yield from _served(kernels_of)


def _engines(row: dict[str, str], backend: str, find: Find) -> tuple[Engine, Engine]:
    shape, gpu, tensor = models()[row["model"]].shape, GPUS[row["gpu"]], int(row["tp"])
    layout = Layout(tensor)
    kernels = find(row["model"], row["gpu"], backend, tensor)
    return FormulaEngine(shape, gpu, layout), KernelEngine(shape, gpu, layout, kernels=kernels)


def with_prompts(find: Find | None = None) -> Iterator[Point]:
    """The points of the sweeps, with the part of the other prompts in their times between tokens."""
    return _sweeps(find or recorded(), _share)


def _sweeps(find: Find, share: float = 0) -> Iterator[Point]:
    for row in _rows(MEASURED / f"{SWEEPS}-prefill.csv"):
        formulas, kernels = _engines(row, "vllm", find)
        tokens, measured = int(row["isl_tokens"]), float(row["ttft_ms"])
        first, second = (1000 * engine.first_token_seconds(tokens) for engine in (formulas, kernels))
        yield Point("sweeps", FIRST, formulas.gpus, f"{tokens}", measured, first, second)
    for row in _rows(MEASURED / f"{SWEEPS}-decode.csv"):
        formulas, kernels = _engines(row, "vllm", find)
        context, measured = int(row["context_tokens"]), float(row["itl_ms"])
        count = max(1, round(float(row["kv_usage"]) * int(row["max_kv_tokens"]) / context))
        prompt = max(1, context - SWEEP_OUTPUT // 2)  # the context is the prompt and half of the answer
        first, second = (
            1000
            * (
                engine.step_seconds(count, context)
                + share * (count - 1) * engine.prompt_seconds(prompt) / SWEEP_OUTPUT
            )
            for engine in (formulas, kernels)
        )
        load = f"{count} x {context}"
        yield Point("sweeps", BETWEEN, formulas.gpus, load, measured, first, second)


def _served(find: Find) -> Iterator[Point]:
    for row in _rows(PUBLISHED):
        pair = _engines(row, row["backend"], find)
        isl, osl, count = (int(row[name]) for name in ("isl_tokens", "osl_tokens", "requests"))
        table, load = f"{row['model']} on {row['gpu']}", f"{count} x {isl} + {osl}"
        gpus, context, source = pair[0].gpus, isl + osl / 2, row["source"]
        ttft, itl = float(row["ttft_ms"]), float(row["itl_ms"])
        one, two = (1000 * engine.busy_first_token_seconds(count, isl, context) for engine in pair)
        yield Point(table, FIRST, gpus, load, ttft, one, two, source)
        one, two = (1000 * engine.busy_step_seconds(count, isl, osl) for engine in pair)
        yield Point(table, BETWEEN, gpus, load, itl, one, two, source)


def left_out(points: Iterable[Point]) -> list[Point]:
    """The points outside of every fit."""
    return [point for point in points if point.table not in ("sweeps", *OF_THE_FIT)]


def rows_within(points: Iterable[Point], column: str, metric: str, margin: float) -> float:
    """How many of 100 measured times are within the prediction of that column with that margin."""
    ratios: list[float] = [getattr(point, column) for point in points if point.metric == metric]
    return 100 * sum(ratio * (1 + margin) >= 1 for ratio in ratios) / len(ratios)


def error(ratios: Iterable[float]) -> float:
    """The median error as a share of the measurement."""
    return median(abs(ratio - 1) for ratio in ratios)


def page() -> str:
    """The page."""
    points = list(all_points())
    return (
        HEAD
        + "\n".join([*_summary(points), PROMISE, *_left_out_of_the_fit(), *_worst(points), *_all(points)])
        + "\n"
    )


def _summary(points: list[Point]) -> list[str]:
    lines = ["## Errors", "", "Ratios are predicted times as a part of measured ones.", ""]
    rows = []
    for metric, group in dict.fromkeys((point.metric, point.table) for point in points):
        some = [point for point in points if (point.metric, point.table) == (metric, group)]
        name = f"{group}{', fitted' if group in ('sweeps', *OF_THE_FIT) else ''}"
        rows.append((metric, name, *_columns(some)))
    some = [point for point in with_prompts() if point.metric == BETWEEN]
    rows.insert(2, (BETWEEN, "sweeps with half of the other prompts, fitted", *_columns(some)))
    for metric in (FIRST, BETWEEN):
        some = [point for point in left_out(points) if point.metric == metric]
        rows.append((f"**{metric}**", "**all that were left out**", *_columns(some)))
    head = ("", "table", "points", "formulas: median, least, most, error", "kernels: the same")
    return [*lines, *table(head, rows), ""]


def _columns(points: list[Point]) -> tuple[str, str, str]:
    formulas = _figures([point.ratio for point in points])
    kernels = _figures([point.kernel_ratio for point in points])
    return str(len(points)), formulas, kernels


def _figures(ratios: list[float]) -> str:
    return f"{median(ratios):.2f}, {min(ratios):.2f}, {max(ratios):.2f}, {100 * error(ratios):.0f} %"


def _left_out_of_the_fit() -> list[str]:
    """Fits of the formulas to a part of the sweeps, and how they predict the other part."""
    lines = ["## Fits of the formulas that leave a part of the sweeps out", ""]
    lines += ["`python -m tools.profiler_accuracy --fit` repeats them.", ""]
    rows = []
    for gpus in (8, 4, 2):
        _fit_without(gpus)
        columns = []
        for metric in (FIRST, BETWEEN):
            ratios = [point.ratio for point in with_prompts() if (point.gpus, point.metric) == (gpus, metric)]
            columns.append(f"{median(ratios):.2f}, {100 * error(ratios):.0f} %")
        rows.append((f"{gpus} GPUs", *columns))
    _set(_KEPT)
    head = ("left out", "first token: median ratio, error", "between tokens: the same")
    return [*lines, *table(head, rows), ""]


def _fit_without(gpus: int) -> None:
    fit(lambda point: point.gpus != gpus)


def _worst(points: list[Point]) -> list[str]:
    lines = ["## The worst rows that were left out of the fit", ""]
    some = sorted(left_out(points), key=lambda point: -abs(math.log(point.kernel_ratio)))[:5]
    some += sorted(left_out(points), key=lambda point: -abs(math.log(point.ratio)))[:5]
    rows = [
        (
            *(point.metric, point.table, str(point.gpus), point.load),
            *(f"{point.measured:.1f}", f"{point.ratio:.2f}", f"{point.kernel_ratio:.2f}"),
        )
        for point in dict.fromkeys(some)
    ]
    what = ("", "table", "GPUs", "requests x prompt + answer")
    return [*lines, *table((*what, "measured, ms", "formulas", "kernels"), rows), ""]


def _all(points: list[Point]) -> list[str]:
    lines = ["## All points", ""]
    lines += [
        "The load is the length of the prompt; the number of requests and their context; or, of served",
        "requests, their number, the prompt and the answer. Units: tokens, milliseconds.",
        "",
    ]
    head = ["", "GPUs", "load", "measured", "formulas", "ratio", "kernels", "ratio", "source"]
    for group in dict.fromkeys(point.table for point in points):
        rows = [
            (
                *(point.metric, str(point.gpus), point.load, f"{point.measured:.1f}"),
                *(f"{point.formulas:.1f}", f"{point.ratio:.2f}"),
                *(f"{point.kernels:.1f}", f"{point.kernel_ratio:.2f}", point.source),
            )
            for point in points
            if point.table == group
        ]
        lines += [f"### {group[:1].upper()}{group[1:]}", "", *table(head, rows), ""]
    return lines[:-1]


_MIN_STEP = 0.01
_share = 0.5
_KEPT = {**{name: float(getattr(timing, name)) for name in FITTED}, SHARE: _share}


def fit(uses: Callable[[Point], bool] = lambda _: True) -> dict[str, float]:
    """Set and return the constants with the least mean logarithmic error over these points of the sweeps.

    Changes one constant at a time, and halves the steps when none improves.
    """
    constants, step = dict(_KEPT), 0.2
    best = _loss(constants, uses)
    while step > _MIN_STEP:
        before = best
        for name in _KEPT:
            for factor in (1 + step, 1 / (1 + step)):
                tried = {**constants, name: constants[name] * factor}
                loss = _loss(tried, uses)
                if loss < best:
                    constants, best = tried, loss
        step = step if best < before else step / 2
    _set(constants)
    return constants


def _loss(constants: dict[str, float], uses: Callable[[Point], bool]) -> float:
    _set(constants)
    return sum(abs(math.log(point.ratio)) for point in with_prompts() if uses(point))


def _set(constants: dict[str, float]) -> None:
    global _share  # noqa: PLW0603  as the constants of the engine
    _share = constants[SHARE]
    for name in FITTED:
        setattr(timing, name, constants[name])


@cache
def _rows(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


class _Recorder:
    """Calls real kernels and records their times."""

    def __init__(self, engine: str, kernels: Kernels, answers: dict[tuple[str, ...], float]) -> None:
        self._engine, self._kernels, self._answers = engine, kernels, answers

    def predict_prefill_latency(self, bs: int, isl: int) -> float:
        milliseconds = self._kernels.predict_prefill_latency(bs, isl)
        self._answers[self._engine, "prefill", str(bs), str(isl)] = milliseconds
        return milliseconds

    def decode_step_latency(self, gen_tokens: int, isl: int, osl: int) -> float:
        milliseconds = self._kernels.decode_step_latency(gen_tokens, isl, osl)
        self._answers[self._engine, "step", str(gen_tokens), str(isl)] = milliseconds
        return milliseconds


def record() -> None:
    """Write the kernels' times for each point."""
    answers: dict[tuple[str, ...], float] = {}

    def find(name: str, gpu: str, backend: str, tensor: int) -> Kernels:
        model = models()[name]
        engine = kernel_source(model.shape, GPUS[gpu], model.config, backend).engine(Layout(tensor))
        if not isinstance(engine, KernelEngine):
            raise TypeError(f"{name} on {tensor} x {gpu} has no kernels")
        return _Recorder(f"{name},{gpu},{backend},{tensor}", engine.kernels, answers)

    list(all_points(find))
    lines = [f"{','.join(key)},{ms:.5g}\n" for key, ms in answers.items()]
    RECORD.write_text("model,gpu,backend,tp,kind,count,tokens,ms\n" + "".join(lines), encoding="utf-8")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--fit"]:
            print({name: float(f"{value:.3g}") for name, value in fit().items()})
        case ["--record"]:
            record()
        case _:
            sys.exit(__doc__)
