"""All candidate graphs, and their Pareto front: tokens per second and user against tokens per second and GPU.

Users feel the first, operators pay for the second, and a graph that is better in one is usually worse in the
other. No graph is better in both than one on the front.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
        for batch in _batches(engine, configuration):
            if configuration.mode is not Mode.DISAGGREGATED:
                considered.append(_aggregated(engine, batch, configuration))
            if prefill and configuration.mode is not Mode.AGGREGATED:
                considered.append(_disaggregated(engine, batch, prefill, configuration))
    return tuple(
        candidate
        for candidate in considered
        if not configuration.budget or candidate.gpus <= configuration.budget
    )


def front(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """The Pareto front, from the fastest for a user to the cheapest."""
    kept: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda one: (-one.per_user, -one.per_gpu, one.gpus)):
        if not kept or candidate.per_gpu > kept[-1].per_gpu:
            kept.append(candidate)
    return tuple(kept)


def _batches(engine: Engine, configuration: Configuration) -> Iterator[int]:
    largest = max_batch(engine, configuration.targets)
    return (2**power for power in range(largest.bit_length()))


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


def _disaggregated(
    engine: Engine, batch: int, prefill: Role, configuration: Configuration
) -> Candidate:
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
    """The number of prefill workers that keep this many decode workers busy."""
    return max(1, math.ceil(decoders * rate / prefill.rate))
