"""All candidates, as SVG charts and as one self-contained HTML page without scripts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from dynamo_profiler.choice import Role, margined, max_batch
from dynamo_profiler.configuration import Configuration, Mode
from dynamo_profiler.engine import Engine

_MAX_DECODERS = 8
"""Largest number of decode workers to try; a larger graph is several of these."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One graph under one load.

    `answers` is the number of concurrent requests of one worker, whose engine has this `layout`. `meets` is
    whether the predictions meet both targets with the margin added. Units: seconds, tokens per second.
    """

    mode: Mode
    workers: str
    gpus: int
    answers: int
    ttft: float
    itl: float
    per_gpu: float
    meets: bool
    layout: str

    @property
    def per_user(self) -> float:
        """Tokens per second and user."""
        return 1 / self.itl


def candidates(
    engines: Iterable[Engine], prefill: Role | None, configuration: Configuration
) -> tuple[Candidate, ...]:
    """The graphs of all engines under all loads; aggregated ones only if `prefill` is None."""
    considered: list[Candidate] = []
    for engine in engines:
        largest = max_batch(engine, configuration.targets)
        for batch in (2**power for power in range(largest.bit_length())):
            if configuration.mode is not Mode.DISAGGREGATED:
                considered.append(_aggregated(engine, batch, configuration))
            if prefill and configuration.mode is not Mode.AGGREGATED:
                considered.append(_disaggregated(engine, batch, prefill, configuration))
    return tuple(
        candidate
        for candidate in considered
        if not configuration.budget or candidate.gpus <= configuration.budget
    )


# Users feel `per_user`, operators pay for `per_gpu`, and a graph that is better in one is usually
# worse in the other. No graph is better in both than one on the front.
def front(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The Pareto front, from the fastest for a user to the cheapest."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (-one.per_user, -one.per_gpu, one.gpus)):
        if not kept or candidate.per_gpu > kept[-1].per_gpu:
            kept.append(candidate)
    return tuple(kept)


def _aggregated(engine: Engine, batch: int, configuration: Configuration) -> Candidate:
    targets, allowed = configuration.targets, margined(configuration, engine)
    ttft = engine.busy_first_token_seconds(batch, targets.isl, targets.context)
    itl = engine.busy_step_seconds(batch, targets.isl, targets.osl)
    return Candidate(
        Mode.AGGREGATED,
        f"1 x {engine.layout}",
        engine.gpus,
        batch,
        ttft,
        itl,
        batch / itl / engine.gpus,
        meets=ttft <= allowed.ttft and itl <= allowed.itl,
        layout=str(engine.layout),
    )


def _disaggregated(engine: Engine, batch: int, prefill: Role, configuration: Configuration) -> Candidate:
    """A graph with the number of decode workers whose prefill workers idle least."""
    step = engine.step_seconds(batch, configuration.targets.context)
    rate = batch / (configuration.targets.osl * step)

    def speed(decoders: int) -> float:
        gpus = _prefillers(decoders, rate, prefill) * prefill.engine.gpus + decoders * engine.gpus
        return decoders * batch / step / gpus

    decoders = max(range(1, _MAX_DECODERS + 1), key=speed)
    prefillers = _prefillers(decoders, rate, prefill)
    return Candidate(
        Mode.DISAGGREGATED,
        f"prefill {prefillers} x {prefill.engine.layout}, decode {decoders} x {engine.layout}",
        prefillers * prefill.engine.gpus + decoders * engine.gpus,
        batch,
        prefill.ttft or 0.0,
        step,
        speed(decoders),
        meets=step <= margined(configuration, engine).itl,
        layout=str(engine.layout),
    )


def _prefillers(decoders: int, rate: float, prefill: Role) -> int:
    return max(1, math.ceil(decoders * rate / prefill.rate))


COLUMNS = (
    *("mode", "workers", "gpus", "answers", "ttft_ms", "itl_ms"),
    *("tokens_per_s_per_gpu", "tokens_per_s_per_user", "meets_targets"),
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
        candidate.mode.value,
        candidate.workers,
        candidate.gpus,
        candidate.answers,
        *times,
        *speeds,
        candidate.meets,
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
