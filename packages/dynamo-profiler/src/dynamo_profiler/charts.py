"""All candidates, as SVG charts and as one self-contained HTML page without scripts."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias

from dynamo_graphs.rows import paragraph
from dynamo_profiler.candidates import COLUMNS, Candidate, front, row
from dynamo_profiler.configuration import Mode, Targets

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 560, 420, 70, 70, 40, 20
_COLOURS = {Mode.AGGREGATED: "#1f77b4", Mode.DISAGGREGATED: "#d95f02"}
_FONT = 'font-family="sans-serif" font-size="12"'
_STYLE = """\
body{font-family:sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;background:white}
div{overflow-x:auto}
td,th{padding:.2rem .6rem;text-align:left}
tr.chosen{font-weight:bold}
"""
_BOLD = ' class="chosen"'
_HALO = 'paint-order="stroke" stroke="white" stroke-width="4"'
_LINE = 13
"""The height of a label."""
_FEW_TICKS, _FEW_POWERS = 8, 4


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis that ends where the values do, from zero unless it is logarithmic."""

    label: str
    values: Sequence[float]
    is_log: bool = False

    @property
    def ends(self) -> tuple[float, float]:
        """The values at both ends."""
        largest = 1.05 * max(self.values, default=1)
        return (min(self.values, default=1) / 1.05 if self.is_log else 0), largest

    def share(self, value: float) -> float:
        """The place of a value, from 0 to 1."""
        scaled: Callable[[float], float] = math.log if self.is_log else float
        low, high = map(scaled, self.ends)
        return (scaled(value) - low) / (high - low)

    @property
    def ticks(self) -> list[float]:
        """Round values between the ends."""
        low, high = self.ends
        if self.is_log:
            powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)))
            factors = (1, 2, 5) if len(powers) < _FEW_POWERS else (1,)
            return [
                tick for power in powers for tick in (f * 10.0**power for f in factors) if low <= tick <= high
            ]
        power = 10.0 ** math.floor(math.log10(high))
        steps = [power * factor for factor in (0.1, 0.2, 0.5, 1)]
        width = next((step for step in steps if high / step <= _FEW_TICKS), power)
        return [number * width for number in range(1, math.floor(high / width) + 1)]


Point: TypeAlias = tuple[Candidate, float, float]
"""A candidate and its place on both axes."""


def svg(title: str, candidates: Sequence[Candidate], targets: Targets) -> str:
    """Tokens per second and GPU, for the asked load, against the speed of an answer and its first token.

    The targets are lines, the choices have rings, and the Pareto front of what meets them is dashed.
    """
    up = _Axis("tokens per second and GPU, for the asked load", [one.per_gpu for one in candidates])
    speed = 1 / targets.itl
    users = _Axis("tokens per second and user", [*(one.per_user for one in candidates), speed])
    firsts = [1000 * one.ttft for one in candidates]
    limit = 1000 * targets.ttft
    first = _Axis("milliseconds to the first token", [*firsts, limit], is_log=True)
    best = front([one for one in candidates if one.meets] or candidates)
    return _drawing(
        title,
        (
            _panel(
                *(users, up),
                [(one, one.per_user, one.per_gpu) for one in candidates],
                [[(one.per_user, one.per_gpu) for one in best]],
                across=(speed, f"itl {1000 * targets.itl:g} ms"),
            ),
            _panel(
                *(first, up),
                [(one, 1000 * one.ttft, one.per_gpu) for one in candidates],
                [],
                across=(limit, f"ttft {limit:g} ms"),
            ),
        ),
    )


def load_svg(title: str, candidates: Sequence[Candidate], targets: Targets) -> str:
    """Both times against the requests that a worker answers at once, with a line for each layout."""
    panels = [_load_panel(candidates, field, getattr(targets, field)) for field in ("ttft", "itl")]
    return _drawing(title, panels)


def _load_panel(candidates: Sequence[Candidate], field: Literal["ttft", "itl"], target: float) -> list[str]:
    names = {"ttft": "milliseconds to the first token", "itl": "milliseconds between two tokens"}
    points = [(one, float(one.answers), 1000 * float(getattr(one, field))) for one in candidates]
    lines: dict[object, list[tuple[float, float]]] = {}
    for candidate, across, up in sorted(points, key=lambda point: point[1]):
        if candidate.chosen != "if exact":  # its prefill workers may be others
            lines.setdefault((candidate.mode, candidate.layout), []).append((across, up))
    load = _Axis("answers at once in a worker", [across for _, across, _ in points], is_log=True)
    times = _Axis(names[field], [*(up for *_, up in points), 1000 * target], is_log=True)
    return _panel(load, times, points, lines.values(), up=(1000 * target, f"{field} {1000 * target:g} ms"))


def _drawing(title: str, panels: Sequence[Sequence[str]]) -> str:
    """Panels side by side below a title and above the legend."""
    width = _WIDTH * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT}" {_FONT}>',
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="18" font-weight="bold">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({_WIDTH * number} 0)">', *panel, "</g>"]
    legend = "".join(
        f'<tspan dx="8" fill="{colour}">● {mode.value}</tspan>' for mode, colour in _COLOURS.items()
    )
    meaning = "filled: within the targets with the margin; pale: if predictions are exact; hollow: not"
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 10}">{legend}<tspan dx="16">{meaning}</tspan></text>')
    return "\n".join([*parts, "</svg>\n"])


def _panel(
    horizontal: _Axis,
    vertical: _Axis,
    points: Sequence[Point],
    lines: Iterable[Sequence[tuple[float, float]]],
    *,
    across: tuple[float, str] | None = None,
    up: tuple[float, str] | None = None,
) -> list[str]:
    """Candidates as points, the choices with a ring; `across` or `up` is where the line of a target is."""
    base, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT

    def at(x: float, y: float) -> tuple[float, float]:
        wide, high = right - _LEFT, base - _TOP
        return _LEFT + wide * horizontal.share(x), base - high * vertical.share(y)

    middle = (_TOP + base) / 2
    parts = [
        f'<path d="M{_LEFT} {_TOP}V{base}H{right}" fill="none" stroke="#444"/>',
        f'<text x="{(_LEFT + right) / 2}" y="{base + 34}" text-anchor="middle">{horizontal.label}</text>',
        f'<text transform="translate(16 {middle}) rotate(-90)" text-anchor="middle">{vertical.label}</text>',
    ]
    for tick in horizontal.ticks:
        x = at(tick, vertical.ends[1])[0]
        parts.append(f'<text x="{x:.0f}" y="{base + 16}" text-anchor="middle">{tick:g}</text>')
    for tick in vertical.ticks:
        y = at(horizontal.ends[1], tick)[1]
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.0f}" text-anchor="end">{tick:g}</text>')
    if across is not None:
        x = at(across[0], vertical.ends[1])[0]
        parts.append(f'<path class="target" d="M{x:.1f} {_TOP}V{base}" stroke="#b00"/>')
        parts.append(f'<text x="{x:.0f}" y="{_TOP - 5}" text-anchor="middle" fill="#b00">{across[1]}</text>')
    if up is not None:
        y = at(horizontal.ends[1], up[0])[1]
        parts.append(f'<path class="target" d="M{_LEFT} {y:.1f}H{right}" stroke="#b00"/>')
        parts.append(f'<text x="{right}" y="{y - 4:.0f}" text-anchor="end" fill="#b00">{up[1]}</text>')
    for line in lines:
        places = " ".join("{:.1f},{:.1f}".format(*at(*place)) for place in line)
        parts.append(f'<polyline points="{places}" fill="none" stroke="#888" stroke-dasharray="4 3"/>')
    labels: list[float] = []
    for candidate, *place in sorted(points, key=lambda point: point[0].chosen):  # choices above the others
        x, y = at(*place)
        parts += _marked(candidate, x, y)
        if candidate.chosen:
            label = y + 4
            while any(abs(label - other) < _LINE for other in labels):
                label += _LINE
            labels.append(label)
            parts += _ringed(candidate, x, y, label)
    return parts


def _marked(candidate: Candidate, x: float, y: float) -> list[str]:
    """The point of a candidate, which says what it is under the pointer."""
    colour = _COLOURS[candidate.mode]
    text = (
        f"{candidate.mode.value}: {candidate.workers}, {candidate.gpus} GPUs, {candidate.answers} at once, "
        f"{candidate.rate:.3g} requests per second"
    )
    opacity = 1 if candidate.meets else 0.3 if candidate.meets_if_exact else 0
    place = f'cx="{x:.1f}" cy="{y:.1f}"'
    fill = f'fill="{colour}" fill-opacity="{opacity}" stroke="{colour}"'
    return [f'<circle {place} r="4" {fill}><title>{escape(text)}</title></circle>']


def _ringed(candidate: Candidate, x: float, y: float, label: float) -> list[str]:
    """The ring of a choice, and its name at the height `label`."""
    anchor, shift = ("end", -12) if x > _WIDTH / 2 else ("start", 12)
    at = f'x="{x + shift:.0f}" y="{label:.0f}" text-anchor="{anchor}"'
    place = f'cx="{x:.1f}" cy="{y:.1f}"'
    return [
        f'<circle class="choice" {place} r="8" fill="none" stroke="black" stroke-width="2"/>',
        f'<text {at} font-weight="bold" {_HALO}>{candidate.chosen}: {candidate.gpus} GPUs</text>',
    ]


def html(title: str, notes: Sequence[str], candidates: Sequence[Candidate], targets: Targets) -> str:
    """The charts, the notes and a table of all candidates."""
    best = set(front(candidates))
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in ("front", *COLUMNS))
    rows = "".join(
        f"<tr{_BOLD if candidate.chosen else ''}><td>{'●' if candidate in best else ''}</td>"
        + "".join(f"<td>{escape(str(value))}</td>" for value in row(candidate))
        + "</tr>\n"
        for candidate in candidates
    )
    paragraphs = "".join(f"{paragraph(note)}\n" for note in notes)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n{paragraphs}"
        f"{svg(title, candidates, targets)}"
        f"{load_svg('Times against load', candidates, targets)}"
        f"<div><table><tr>{head}</tr>\n{rows}</table></div></body></html>\n"
    )
