"""Write the figures of the scenario `scale` to `docs/performance.md`: a table and a plot.

The plot is a small SVG without a library, so that a review can compare it.
"""

import os
import platform
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import log10
from pathlib import Path

from bench.scale import CHANGES, RESYNC_SECONDS, Figures

PAGE = Path("docs/performance.md")
PLOT = Path("docs/performance.svg")
_BEGIN, _END = "<!-- figures: begin -->", "<!-- figures: end -->"

REFERENCE_SECONDS = {20: 9.3, 100: 49.0, 300: 195.0}
"""The Go operator: seconds until all graphs are successful, measured in the same way on two cores."""
REFERENCE_BARE_SECONDS = {100: 11.0}
"""Seconds in which a bare client created the same objects on the Go operator's machine."""
REFERENCE_CPU = {20: 2.2, 100: 10.7, 300: 34.7}

_ROWS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    ("runs, of which these are the medians", lambda run: str(run.rounds)),
    ("all successful after (s)", lambda run: f"{run.successful_seconds:.1f}"),
    ("… half of them after (s)", lambda run: f"{run.half_successful_seconds:.1f}"),
    ("… divided by their number (ms)", lambda run: f"{1e3 * run.successful_seconds / run.graphs:.0f}"),
    ("the floor: all written after (s)", lambda run: f"{run.floor_seconds:.1f}"),
    ("the floor: and all available after (s)", lambda run: f"{run.floor_available_seconds:.1f}"),
    ("**ratio to the floor**", lambda run: f"{_ratio(run):.2f}"),
    ("a bare client: objects created after (s)", lambda run: _some(run.bare_seconds)),
    ("… on the Go operator's machine", lambda run: _reference(REFERENCE_BARE_SECONDS, run)),
    ("the Go operator, on its machine (s)", lambda run: _reference(REFERENCE_SECONDS, run)),
    ("operator CPU until all are successful (s)", lambda run: f"{run.successful_cpu_seconds:.1f}"),
    (
        "… and until it is idle: it has written its Events, which the floor does not",
        lambda run: f"{run.cpu_seconds:.1f}",
    ),
    ("… the floor's", lambda run: f"{run.floor_cpu_seconds:.1f}"),
    (
        "… **as multiples of the floor's**",
        lambda run: ", ".join(
            f"{used / run.floor_cpu_seconds:.1f}" for used in (run.successful_cpu_seconds, run.cpu_seconds)
        ),
    ),
    ("… the Go operator's", lambda run: _reference(REFERENCE_CPU, run)),
    ("resident memory: empty, peak (MiB)", lambda run: f"{run.start_mib:.0f}, {run.peak_mib:.0f}"),
    ("requests per graph", lambda run: f"{run.requests / run.graphs:.1f}"),
    ("… of them Events", lambda run: f"{run.events / run.graphs:.1f}"),
    ("reconciles per graph", lambda run: f"{run.reconciles / run.graphs:.1f}"),
    (
        "last Deployment available → graph is ready, p50, p99 (ms)",
        lambda run: f"{run.status_p50_ms:.0f}, {run.status_p99_ms:.0f}",
    ),
    ("API server, CPU (s)", lambda run: f"{run.server_cpu_seconds:.1f}"),
    ("… with the floor", lambda run: f"{run.floor_server_cpu_seconds:.1f}"),
    ("API server, time for our requests (s)", lambda run: f"{run.server_seconds:.1f}"),
    (
        f"one replica change reaches the Deployment, p50, max of {CHANGES} (ms)",
        lambda run: f"{run.change_p50_ms:.0f}, {run.change_max_ms:.0f}",
    ),
    (
        "… three such writes by a client that decides nothing",
        lambda run: f"{run.floor_change_p50_ms:.0f}, {run.floor_change_max_ms:.0f}",
    ),
    (
        f"… during a resync that takes {RESYNC_SECONDS} s in place of 600",
        lambda run: f"{run.resync_change_p50_ms:.0f}, {run.resync_change_max_ms:.0f}",
    ),
    (
        "… while every object is reconciled at once",
        lambda run: f"{run.at_once_change_p50_ms:.0f}, {run.at_once_change_max_ms:.0f}",
    ),
    ("… requests for it, of them Events", lambda run: f"{run.change_requests:.1f}, {run.change_events:.1f}"),
    ("idle: CPU (% of a core)", lambda run: f"{run.idle_cpu_percent:.2f}"),
    ("idle: requests", lambda run: str(run.idle_requests)),
    ("restart: ready after (s)", lambda run: f"{run.restart_ready_seconds:.1f}"),
    ("restart: has done what it missed after (s)", lambda run: f"{run.restart_effective_seconds:.1f}"),
    ("restart: quiet after (s)", lambda run: f"{run.restart_quiet_seconds:.1f}"),
    ("restart: CPU (s)", lambda run: f"{run.restart_cpu_seconds:.1f}"),
    ("restart: writes", lambda run: str(run.restart_writes)),
)


def table(results: Sequence[Figures]) -> str:
    """All figures, with a column for each number of graphs."""
    head = " | ".join(f"{figures.graphs} graphs" for figures in results)
    lines = [f"| | {head} |", f"|---|{'---:|' * len(results)}"]
    lines += [f"| {name} | {' | '.join(map(row, results))} |" for name, row in _ROWS]
    kinds = sorted({kind for figures in results for kind in figures.by_kind})
    lines += ["", f"| requests per graph, by verb and kind | {head} |"]
    lines += [f"|---|{'---:|' * len(results)}"]
    for kind in kinds:
        counts = " | ".join(f"{figures.by_kind.get(kind, 0) / figures.graphs:.2f}" for figures in results)
        lines.append(f"| `{kind}` | {counts} |")
    return "\n".join(lines)


def rewrite(results: Sequence[Figures], arguments: Sequence[str]) -> None:
    """Rewrite the table on the page, and the plot."""
    command = f'make bench ARGS="{" ".join(arguments)}"'
    heading = f"{_machine()}, {datetime.now(UTC):%Y-%m-%d}; `{command}`:"
    text = f"{_BEGIN}\n{heading}\n\n{table(results)}\n{_END}"
    old = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(_BEGIN)}.*{re.escape(_END)}", re.DOTALL)
    PAGE.write_text(pattern.sub(lambda _: text, old), encoding="utf-8")
    PLOT.write_text(plot(results), encoding="utf-8")


def plot(results: Sequence[Figures]) -> str:
    """Seconds until all graphs are successful, by their number, both logarithmic."""
    ours = {figures.graphs: figures.successful_seconds for figures in results}
    floor = {figures.graphs: figures.floor_available_seconds for figures in results}
    lines = (
        ("Go operator", REFERENCE_SECONDS, "#888888"),
        ("this operator", ours, "#76b900"),
        ("floor", floor, "#1f77b4"),
    )
    return _drawing(lines)


_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 400, 60, 20, 130, 45
_FONT = 'font-family="sans-serif" font-size="12"'
_X, _Y = (10.0, 2000.0), (1.0, 1000.0)


def _drawing(lines: Sequence[tuple[str, dict[int, float], str]]) -> str:
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
    ]
    for value in (10, 20, 100, 300, 1000):
        x = _x(value)
        parts.append(_segment(x, _TOP, x, _HEIGHT - _BOTTOM))
        parts.append(f'<text x="{x:.1f}" y="{_HEIGHT - 28}" text-anchor="middle">{value}</text>')
    for value in (1, 10, 100, 1000):
        y = _y(value)
        parts.append(_segment(_LEFT, y, _WIDTH - _RIGHT, y))
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}" text-anchor="middle">graphs</text>')
    parts.append(f'<text x="8" y="{_TOP - 6}">seconds until all are successful</text>')
    for name, points, colour in lines:
        placed = [(_x(number), _y(points[number])) for number in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in placed]
        x, y = placed[-1]
        parts.append(f'<text x="{x + 8:.1f}" y="{y + 4:.1f}" fill="{colour}">{name}</text>')
    return "\n".join((*parts, "</svg>\n"))


def _segment(left: float, top: float, right: float, bottom: float) -> str:
    ends = f'x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}"'
    return f'<line {ends} stroke="#dddddd"/>'


def _x(value: float) -> float:
    return _LEFT + (_WIDTH - _RIGHT - _LEFT) * _part(value, *_X)


def _y(value: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * _part(max(value, _Y[0]), *_Y)


def _part(value: float, first: float, last: float) -> float:
    return (log10(value) - log10(first)) / (log10(last) - log10(first))


def _ratio(figures: Figures) -> float:
    floor = figures.floor_available_seconds
    return figures.successful_seconds / floor if floor else 0.0


def _some(seconds: float) -> str:
    return f"{seconds:.1f}" if seconds else ""


def _reference(figures: dict[int, float], of: Figures) -> str:
    seconds = figures.get(of.graphs)
    return "" if seconds is None else f"{seconds:.1f}"


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    name = model[1] if model else platform.machine()
    python = platform.python_version()
    return f"{os.cpu_count()} cores ({name}), {memory:.0f} GiB, Linux, Python {python}"
