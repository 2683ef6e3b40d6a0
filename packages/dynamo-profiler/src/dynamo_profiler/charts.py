"""All candidates, as SVG charts and as one self-contained HTML page without scripts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from dynamo_profiler.choice import (
    Answer,
    Choice,
    Role,
    aggregated,
    decoder,
    disaggregated,
    margined,
    max_batch,
    worker,
)
from dynamo_profiler.configuration import Configuration, Mode
from dynamo_profiler.engine import Engine


@dataclass(frozen=True, slots=True)
class Candidate:
    """The smallest graph for the asked load whose workers of this `layout` answer so many requests at once.

    `rate` is the load that it can serve with these times, `per_gpu` its share of the asked load. `meets` is
    whether the predictions meet both targets with the margin added, `meets_if_exact` without. `chosen` says
    which choice it is: `safer`, `if exact` or none. Units: seconds, requests and tokens per second.
    """

    mode: Mode
    workers: str
    gpus: int
    rate: float
    answers: int
    ttft: float
    itl: float
    per_gpu: float
    meets: bool
    meets_if_exact: bool
    layout: str
    chosen: Literal["safer", "if exact", ""] = ""

    @property
    def per_user(self) -> float:
        """Tokens per second and user."""
        return 1 / self.itl


def candidates(
    engines: Iterable[Engine], prefill: Role | None, answer: Answer, configuration: Configuration
) -> tuple[Candidate, ...]:
    """The choices, then graphs of all engines with all batches; without `prefill` aggregated ones only."""
    has_margin = any(answer.choice.margin)
    considered = [_candidate(answer.choice, configuration, "safer" if has_margin else "if exact")]
    if answer.exact is not None:
        considered.append(_candidate(answer.exact, configuration, "if exact"))
    for engine in engines:
        largest = max_batch(engine, configuration.targets)
        for batch in (2**power for power in range(largest.bit_length())):
            if configuration.mode is not Mode.DISAGGREGATED:
                choice = aggregated(worker(engine, batch, configuration), configuration)
                considered.append(_candidate(choice, configuration))
            if prefill and configuration.mode is not Mode.AGGREGATED:
                decode = decoder(engine, batch, configuration)
                choice = disaggregated(prefill, decode, configuration)
                considered.append(_candidate(choice, configuration))
    affordable = (one for one in considered if not configuration.budget or one.gpus <= configuration.budget)
    by_graph_and_batch: dict[object, Candidate] = {}
    for candidate in affordable:
        by_graph_and_batch.setdefault((candidate.workers, candidate.answers), candidate)
    return tuple(by_graph_and_batch.values())


def cheapest_of_layouts(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The choices, and of the other layouts that meet the targets the cheapest graph, cheapest first."""
    kept: dict[object, Candidate] = {}
    for candidate in sorted(candidates, key=lambda one: (not one.chosen, one.gpus, -one.rate)):
        if candidate.chosen or candidate.meets:
            kept.setdefault((candidate.mode, candidate.layout, candidate.chosen == "if exact"), candidate)
    return tuple(sorted(kept.values(), key=lambda one: (one.gpus, not one.chosen, -one.rate)))


# Users feel `per_user`, operators pay for `per_gpu`, and a graph that is better in one is usually
# worse in the other. No graph is better in both than one on the front.
def front(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The Pareto front, from the fastest for a user to the cheapest."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (-one.per_user, -one.per_gpu, one.gpus)):
        if not kept or candidate.per_gpu > kept[-1].per_gpu:
            kept.append(candidate)
    return tuple(kept)


def _candidate(
    choice: Choice, configuration: Configuration, chosen: Literal["safer", "if exact", ""] = ""
) -> Candidate:
    last, targets = choice.roles[-1], configuration.targets
    first = choice.roles[0].engine
    ttft, itl = margined(configuration, first).ttft, margined(configuration, last.engine).itl
    return Candidate(
        choice.mode,
        choice.workers_text(),
        choice.gpus,
        choice.rate,
        last.batch,
        choice.ttft,
        choice.itl,
        configuration.requests_per_second * targets.osl / choice.gpus,
        meets=choice.ttft <= ttft and choice.itl <= itl,
        meets_if_exact=choice.ttft <= targets.ttft and choice.itl <= targets.itl,
        layout=str(last.engine.layout),
        chosen=chosen,
    )


COLUMNS = (
    *("choice", "mode", "workers", "gpus", "requests_per_s", "answers", "ttft_ms", "itl_ms"),
    *("tokens_per_s_per_gpu", "tokens_per_s_per_user", "meets_targets", "meets_targets_if_exact"),
)
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 720, 420, 70, 50, 20
_COLOURS = {Mode.AGGREGATED: "#1f77b4", Mode.DISAGGREGATED: "#d95f02"}
_TICKS = 5
_FONT = 'font-family="sans-serif" font-size="12"'
_STYLE = """\
body{font-family:sans-serif;max-width:72rem;margin:2rem auto}
td,th{padding:.2rem .6rem;text-align:left}
"""


def row(candidate: Candidate) -> tuple[str | int | float | bool, ...]:
    """The values of `COLUMNS` for one candidate."""
    times = (round(1000 * candidate.ttft, 1), round(1000 * candidate.itl, 2))
    speeds = (round(candidate.per_gpu, 1), round(candidate.per_user, 1))
    return (
        candidate.chosen,
        candidate.mode.value,
        candidate.workers,
        candidate.gpus,
        float(f"{candidate.rate:.3g}"),
        candidate.answers,
        *times,
        *speeds,
        candidate.meets,
        candidate.meets_if_exact,
    )


def svg(title: str, candidates: Sequence[Candidate]) -> str:
    """Tokens per second and GPU against tokens per second and user: all candidates and their Pareto front."""
    return _chart(
        title,
        ("tokens per second and user", "tokens per second and GPU"),
        [(candidate, candidate.per_user, candidate.per_gpu) for candidate in candidates],
        [[(candidate.per_user, candidate.per_gpu) for candidate in front(candidates)]],
    )


def load_svg(title: str, candidates: Sequence[Candidate], field: Literal["ttft", "itl"]) -> str:
    """The time to first token, or between tokens, against concurrency, one line for each layout."""
    names = {"ttft": "milliseconds to the first token", "itl": "milliseconds between two tokens"}
    points = [
        (candidate, float(candidate.answers), 1000 * float(getattr(candidate, field)))
        for candidate in candidates
    ]
    lines: dict[tuple[Mode, str], list[tuple[float, float]]] = {}
    for candidate, across, up in points:
        lines.setdefault((candidate.mode, candidate.layout), []).append((across, up))
    return _chart(title, ("answers at once in a worker", names[field]), points, lines.values())


def _chart(
    title: str,
    axes: tuple[str, str],
    points: Sequence[tuple[Candidate, float, float]],
    lines: Iterable[Sequence[tuple[float, float]]],
) -> str:
    """Candidates as points, filled if they meet the targets, and lines between some points."""
    right = _nice(max((across for _, across, _ in points), default=1))
    top = _nice(max((up for _, _, up in points), default=1))

    def at(across: float, up: float) -> tuple[float, float]:
        wide, high = _WIDTH - _LEFT - _TOP, _HEIGHT - _BOTTOM - 2 * _TOP
        return _LEFT + wide * across / right, _HEIGHT - _BOTTOM - high * up / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT}>',
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="16" font-weight="bold">{escape(title)}</text>',
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}">{axes[0]}</text>',
        f'<text transform="translate(16 {_HEIGHT / 2 + 70}) rotate(-90)">{axes[1]}</text>',
        *_axes(right, top),
    ]
    for candidate, across, up in points:
        x, y = at(across, up)
        colour = _COLOURS[candidate.mode]
        text = f"{candidate.mode.value}: {candidate.workers}, {candidate.answers} at once"
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour if candidate.meets else "none"}" '
            f'stroke="{colour}"><title>{escape(text)}</title></circle>'
        )
    for line in lines:
        places = " ".join("{:.1f},{:.1f}".format(*at(*place)) for place in line)
        parts.append(f'<polyline points="{places}" fill="none" stroke="#444" stroke-dasharray="4 3"/>')
    for place, mode in enumerate(Mode):
        parts.append(
            f'<text x="{_WIDTH - 240}" y="{36 + 16 * place}" fill="{_COLOURS[mode]}">● {mode.value} '
            "(filled: meets targets)</text>"
        )
    return "\n".join([*parts, "</svg>\n"])


def html(title: str, notes: Sequence[str], candidates: Sequence[Candidate]) -> str:
    """The charts, the notes and a table of all candidates."""
    best = set(front(candidates))
    head = "".join(f"<th>{escape(column.replace('_', ' '))}</th>" for column in ("front", *COLUMNS))
    rows = "".join(
        f"<tr><td>{'●' if candidate in best else ''}</td>"
        + "".join(f"<td>{escape(str(value))}</td>" for value in row(candidate))
        + "</tr>\n"
        for candidate in candidates
    )
    paragraphs = "".join(f"<p>{escape(note)}</p>\n" for note in notes)
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n{paragraphs}"
        f"{svg(title, candidates)}"
        f"{load_svg('First token against load', candidates, 'ttft')}"
        f"{load_svg('Between two tokens against load', candidates, 'itl')}"
        f"<table><tr>{head}</tr>\n{rows}</table></body></html>\n"
    )


def _axes(right: float, top: float) -> list[str]:
    base, wide, high = _HEIGHT - _BOTTOM, _WIDTH - _LEFT - _TOP, _HEIGHT - _BOTTOM - 2 * _TOP
    parts = [f'<path d="M{_LEFT} {2 * _TOP}V{base}H{_WIDTH - _TOP}" fill="none" stroke="#444"/>']
    for step in range(1, _TICKS + 1):
        across, up = _LEFT + wide * step / _TICKS, base - high * step / _TICKS
        parts.append(f'<text x="{across - 10:.0f}" y="{base + 16}">{right * step / _TICKS:g}</text>')
        parts.append(f'<text x="{_LEFT - 44}" y="{up + 4:.0f}">{top * step / _TICKS:g}</text>')
    return parts


def _nice(most: float) -> float:
    """The next round number above, for the end of an axis."""
    power: float = 10.0 ** math.floor(math.log10(most))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if most <= factor * power)
