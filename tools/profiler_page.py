"""The figures in docs/profiler.md: defaults, errors and margins of the engines, and GPUs.

The rest of the page is written by hand: `make docs` replaces cells and rows of its tables.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dynamo_profiler.configuration import read_configuration
from dynamo_profiler.engine import Engine, FormulaEngine
from dynamo_profiler.kernels import SYSTEMS, KernelEngine
from dynamo_profiler.shape import GPUS
from tools.markdown import table
from tools.profiler_accuracy import BETWEEN, FIRST, Point, all_points, left_out, rows_within

PAGE = Path(__file__).parents[1] / "docs" / "profiler.md"
ENGINES: Mapping[str, type[Engine]] = {"ratio": FormulaEngine, "kernel_ratio": KernelEngine}
"""By the column of their predictions in the measured points."""


def page() -> str:
    """The page with the present figures.

    Raises:
        ValueError: it lacks one of the tables, or a row.
    """
    text = PAGE.read_text(encoding="utf-8")
    for key, default in _defaults().items():
        text = _replaced(text, rf"^(\| {re.escape(key)} \|) [^|]* \|", rf"\1 {default} |")
    for engine in ENGINES.values():
        name, error = engine.source, engine.accuracy
        row = rf"^(\| `{name}` \|.*\|) \d+ %, \d+ % \|$"
        text = _replaced(text, row, rf"\1 {100 * error.ttft:g} %, {100 * error.itl:g} % |")
    text = _replaced(text, r"\| GB200, .* on one node;", f"| {_covered()} on one node;")
    head = ("engine", "margins (first token, between tokens)", "rows within", "margins for four of five rows")
    text = _with_table(text, head, [_margins(column, engine) for column, engine in ENGINES.items()])
    return _with_table(text, ("name", "TFLOP/s", "GB", "GB/s", "GB/s of the link", "FP8"), _gpus())


def _defaults() -> dict[str, str]:
    known = read_configuration({"engine": {"backend": "vllm"}, "deployment": {"model": "a/8B"}})
    targets, hardware = known.targets, known.hardware
    return {
        "`sla.isl`, `sla.osl`": f"{targets.isl}, {targets.osl}",
        "`sla.ttft`, `sla.itl`": f"{1000 * targets.ttft:g}, {1000 * targets.itl:g}",
        "`hardware.gpuType`, or `sweep.aicSystem`": f"`{hardware.gpu.name}`, reported as assumed",
        "`hardware.numGpusPerNode`": f"{hardware.per_node}",
        "`hardware.minNumGpusPerEngine`, `hardware.maxNumGpusPerEngine`": f"{hardware.min_gpus}, a node's",
        "`hardware.enableGpuDiscovery`, or `--enable-gpu-discovery`": str(known.discovers).lower(),
        "`sweep.prefillInterpolationGranularity`, `sweep.decodeInterpolationGranularity`": (
            f"{known.prefill_points}, {known.decode_points}"
        ),
        "`outputDir`": f"`{known.output_folder}`",
        "`requestsPerSecond`": f"{known.requests_per_second:g}",
        "`engine`": f"`{known.engine}`",
        "`maxNodesPerEngine`": f"{hardware.nodes}",
        "`secondsPerPhase`": f"{known.seconds_per_phase:g}",
    }


def _covered() -> str:
    names = [
        name.removesuffix("_sxm").upper()
        + (" SXM" if name.replace("sxm", "pcie") in {*GPUS} - {name} else "")
        for name in SYSTEMS
    ]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _margins(column: str, engine: type[Engine]) -> tuple[str, ...]:
    margins, points = engine.accuracy, left_out(all_points())
    pairs = tuple(zip((FIRST, BETWEEN), margins, strict=True))
    within = (rows_within(points, column, metric, margin) for metric, margin in pairs)
    needed = (_needed(points, column, metric) for metric, _ in pairs)
    return (
        f"`{engine.source}`",
        ", ".join(f"{margin:.0%}".replace("%", " %") for margin in margins),
        ", ".join(f"{share:.0f} %" for share in within),
        ", ".join(f"{100 * margin:.0f} %" for margin in needed),
    )


def _needed(points: Iterable[Point], column: str, metric: str) -> float:
    """The smallest margin within which four of five measured times are, in steps of a twentieth."""
    ratios: list[float] = [getattr(point, column) for point in points if point.metric == metric]
    needed = sorted(1 / ratio - 1 for ratio in ratios)
    return max(0, math.ceil(20 * needed[math.ceil(0.8 * len(needed)) - 1]) / 20)


def _gpus() -> list[tuple[str, ...]]:
    return [
        (
            f"`{gpu.name}`",
            *(f"{gpu.flops / 1e12:g}", f"{gpu.memory_bytes / 1e9:g}", f"{gpu.bytes_per_second / 1e9:g}"),
            *(f"{gpu.link_bytes_per_second / 1e9:g}", "yes" if gpu.has_fp8 else "no"),
        )
        for gpu in GPUS.values()
    ]


def _with_table(text: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = table(head, rows)
    return _replaced(text, rf"^{re.escape(lines[0])}\n(?:\|.*\n)+", "\n".join([*lines, ""]))


def _replaced(text: str, pattern: str, replacement: str) -> str:
    text, count = re.subn(pattern, replacement, text, count=1, flags=re.MULTILINE)
    if not count:
        raise ValueError(f"{PAGE.name} has nothing like {pattern}")
    return text
