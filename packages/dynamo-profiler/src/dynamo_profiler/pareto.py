"""All graphs that were considered, and the front of those that no other one beats in both respects.

What users feel is the speed of one answer, what operators pay is the speed of a GPU. A graph that is better
in one is usually worse in the other; no other graph is better in both than one on the front.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dynamo_profiler.choice import Role, margined, most_answers
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
    engines: Iterable[Engine], prefill: Role | None, configuration: Configuration
) -> tuple[Candidate, ...]:
    """The graphs of all engines under all loads. `prefill` None: no separate prefill is quick enough."""
    made: list[Candidate] = []
    for engine in engines:
        for answers in _loads(engine, configuration):
            if configuration.mode is not Mode.DISAGGREGATED:
                made.append(_together(engine, answers, configuration))
            if prefill and configuration.mode is not Mode.AGGREGATED:
                made.append(_apart(engine, answers, prefill, configuration))
    return tuple(
        candidate
        for candidate in made
        if not configuration.budget or candidate.gpus <= configuration.budget
    )


def front(made: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Those that no other one beats, from the quickest for a user to the cheapest."""
    kept: list[Candidate] = []
    for candidate in sorted(made, key=lambda one: (-one.per_user, -one.per_gpu, one.gpus)):
        if not kept or candidate.per_gpu > kept[-1].per_gpu:
            kept.append(candidate)
    return tuple(kept)


def _loads(engine: Engine, configuration: Configuration) -> Iterator[int]:
    most = most_answers(engine, configuration.targets)
    return (2**power for power in range(most.bit_length()))


def _together(engine: Engine, answers: int, configuration: Configuration) -> Candidate:
    targets, allowed = configuration.targets, margined(configuration, engine)
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


def _apart(engine: Engine, answers: int, prefill: Role, configuration: Configuration) -> Candidate:
    """With the number of decode workers whose prefill workers idle least."""
    step = engine.step_seconds(answers, configuration.targets.context)
    rate = answers / (configuration.targets.osl * step)

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
        meets=step <= margined(configuration, engine).itl,
        layout=engine.layout,
    )


def _helpers(decoders: int, rate: float, prefill: Role) -> int:
    """How many prefill workers so many decode workers take."""
    return max(1, math.ceil(decoders * rate / prefill.rate))
