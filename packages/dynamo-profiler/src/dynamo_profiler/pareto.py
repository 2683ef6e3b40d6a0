"""All graphs that were considered, and the front of those that no other one beats in both respects.

What users feel is the speed of one answer, what operators pay is the speed of a GPU. A graph that is better
in one is usually worse in the other; no other graph is better in both than one on the front.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dynamo_profiler.choice import MOST_ANSWERS, Role, margined
from dynamo_profiler.configuration import Configuration, Mode
from dynamo_profiler.engine import Engine

_MOST_DECODERS = 8
"""Decode workers for which prefill workers are counted; a larger graph is several of these."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One graph under one load.

    `answers` are those at once in one worker, whose engine is cut by `layout`. `meets` is whether both
    targets are met with the error of the predictions added. Units: seconds, tokens per second.
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
        """Tokens per second of one answer."""
        return 1 / self.itl


def candidates(
    found: Iterable[Engine], prefill: Role | None, wanted: Configuration
) -> tuple[Candidate, ...]:
    """The graphs of all engines under all loads. `prefill` None: no separate prefill is quick enough."""
    made: list[Candidate] = []
    for engine in found:
        for answers in _loads(engine, wanted):
            if wanted.mode is not Mode.DISAGGREGATED:
                made.append(_together(engine, answers, wanted))
            if prefill and wanted.mode is not Mode.AGGREGATED:
                made.append(_apart(engine, answers, prefill, wanted))
    return tuple(each for each in made if not wanted.budget or each.gpus <= wanted.budget)


def front(made: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Those that no other one beats, from the quickest for a user to the cheapest."""
    kept: list[Candidate] = []
    for each in sorted(made, key=lambda one: (-one.per_user, -one.per_gpu, one.gpus)):
        if not kept or each.per_gpu > kept[-1].per_gpu:
            kept.append(each)
    return tuple(kept)


def _loads(engine: Engine, wanted: Configuration) -> Iterator[int]:
    targets = wanted.targets
    most = min(MOST_ANSWERS, engine.cache_tokens // (targets.isl + targets.osl))
    return (2**power for power in range(max(0, most).bit_length()))


def _together(engine: Engine, answers: int, wanted: Configuration) -> Candidate:
    targets, allowed = wanted.targets, margined(wanted, engine)
    ttft = engine.busy_first_token_seconds(answers, targets.isl, targets.context)
    itl = engine.busy_step_seconds(answers, targets.isl, targets.osl)
    return Candidate(
        Mode.AGGREGATED,
        f"1 x {engine.layout}",
        engine.gpus,
        answers,
        ttft,
        itl,
        answers / itl / engine.gpus,
        meets=ttft <= allowed.ttft and itl <= allowed.itl,
        layout=engine.layout,
    )


def _apart(engine: Engine, answers: int, prefill: Role, wanted: Configuration) -> Candidate:
    """With the number of decode workers whose prefill workers idle least."""
    step = engine.step_seconds(answers, wanted.targets.context)
    rate = answers / (wanted.targets.osl * step)

    def speed(decoders: int) -> float:
        gpus = _helpers(decoders, rate, prefill) * prefill.engine.gpus + decoders * engine.gpus
        return decoders * answers / step / gpus

    decoders = max(range(1, _MOST_DECODERS + 1), key=speed)
    helpers = _helpers(decoders, rate, prefill)
    return Candidate(
        Mode.DISAGGREGATED,
        f"prefill {helpers} x {prefill.engine.layout}, decode {decoders} x {engine.layout}",
        helpers * prefill.engine.gpus + decoders * engine.gpus,
        answers,
        prefill.ttft or 0.0,
        step,
        speed(decoders),
        meets=step <= margined(wanted, engine).itl,
        layout=engine.layout,
    )


def _helpers(decoders: int, rate: float, prefill: Role) -> int:
    """How many prefill workers so many decode workers take."""
    return max(1, math.ceil(decoders * rate / prefill.rate))
