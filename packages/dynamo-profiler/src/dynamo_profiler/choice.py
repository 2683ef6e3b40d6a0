"""The cheapest engines that meet the targets: all sizes of engines are tried, in both modes.

How many answers an engine works on at once decides everything: the more, the more requests it
serves, and the longer each takes. So for each engine the largest number is taken with which the
targets still hold. With t the time of a prompt's prefill, s(b) that of a step for b answers, and N
tokens of answer, f the time of a request outside of the engine:

    decode apart   itl = s(b)                              rate = b / (N·s(b))
    prefill apart  ttft = f + t·(1 + u/(2·(1-u))) + transfer   rate = u / t
    together       itl = s(b) + b·t/N                      rate = 1 / (N·s(b)/b + t)
                   ttft = f + t·(1 + 0.2·√b) + s(b)

u is the share of time that prompts take; u/(2·(1-u)) is the mean wait in a queue with constant
service times (Pollaczek-Khinchine). Together, each answer is delayed by the prompts that come while
it grows, and prompts wait for each other as measured. Every one of these grows with b, so the largest
b is found by halving. The graph is then the one with the fewest GPUs for the wanted rate; of equals
the one that could serve more.

Predictions are off, by errors that are known. A graph meets a target only if the prediction meets it with
the engine's margin added (`Engine.margin`); docs/profiler.md says how many measured times are then within.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from dynamo_profiler.configuration import Configuration, Hardware, Margin, Mode, Targets
from dynamo_profiler.engine import FIRST_TOKEN_SECONDS, Accuracy, Engine
from dynamo_profiler.layouts import layouts
from dynamo_profiler.refusal import Refusal
from dynamo_profiler.shape import Shape
from dynamo_profiler.sources import Make

MOST_ANSWERS = 1024
"""What an engine works on at once. Source: vLLM's default of `--max-num-seqs` on such GPUs."""

MOST_REPLICAS = 1000
_ROOM = {
    Margin.FOUR_OF_FIVE: "",
    Margin.MEDIAN: "; the targets leave a margin for the median error only",
    Margin.NONE: "; the targets leave no margin for this error",
}


@dataclass(frozen=True, slots=True)
class Role:
    """Engines of one kind: one of them, what it does at its best, and how many there are.

    `ttft` and `itl` are those at that rate; None means: the role has no part in it. Units: seconds,
    requests per second.
    """

    engine: Engine
    rate: float
    replicas: int
    ttft: float | None = None
    itl: float | None = None

    @property
    def gpus(self) -> int:
        """Of all replicas."""
        return self.replicas * self.engine.gpus


@dataclass(frozen=True, slots=True)
class Choice:
    """The workers of a graph: one role that does all, or prefill and decode.

    `room`: the error of the predictions with which they meet the targets, and not only as predicted.
    """

    mode: Mode
    roles: tuple[Role, ...]
    room: Margin = Margin.FOUR_OF_FIVE

    @property
    def gpus(self) -> int:
        """Of all workers."""
        return sum(role.gpus for role in self.roles)

    @property
    def workers(self) -> tuple[object, ...]:
        """What its graph depends on: the mode, and the layout and the replicas of each role."""
        return (self.mode, *((role.engine.cut, role.replicas) for role in self.roles))

    @property
    def rate(self) -> float:
        """How many requests per second all of them serve within the targets."""
        return min(role.rate * role.replicas for role in self.roles)

    @property
    def ttft(self) -> float:
        """The time to the first token at that rate, at most. Units: seconds."""
        return max(role.ttft for role in self.roles if role.ttft is not None)

    @property
    def itl(self) -> float:
        """The time between two tokens at that rate, at most. Units: seconds."""
        return max(role.itl for role in self.roles if role.itl is not None)

    @property
    def accuracy(self) -> Accuracy:
        """The error of the times, as measured: the larger one of the roles."""
        errors = [role.engine.accuracy for role in self.roles]
        return Accuracy(max(error.ttft for error in errors), max(error.itl for error in errors))

    def text(self) -> str:
        """The choice in one line, with the error of its times."""
        is_apart = self.mode is Mode.DISAGGREGATED
        names = ("prefill", "decode") if is_apart else ("worker",)
        parts = [
            f"{name} {role.replicas} x {role.engine.gpus} GPU ({role.engine.layout})"
            for role, name in zip(self.roles, names, strict=True)
        ]
        first, error = self.roles[0].engine, self.accuracy
        return (
            f"{self.mode.value}, {', '.join(parts)} ({first.gpu.name}), by {first.source}: ttft "
            f"{self.ttft * 1000:.4g} ms ± {error.ttft:.0%}, itl {self.itl * 1000:.4g} ms ± {error.itl:.0%}, "
            f"{self.rate:.3g} requests per second" + _ROOM[self.room]
        )


def fitting_engines(
    shape: Shape, hardware: Hardware, targets: Targets, make: Make
) -> tuple[Engine, ...]:
    """The engines that hold the model and one request, smallest first.

    Raises:
        Refusal: none does.
    """
    ways = layouts(
        *(shape, hardware.fewest, hardware.most, hardware.per_node), nodes=hardware.nodes
    )
    if not ways:
        raise Refusal(
            f"no engine of {hardware.fewest} to {hardware.most} GPUs is possible: the model is "
            f"split over a power of two of GPUs that divides its {shape.heads} attention heads"
        )
    made: list[Engine] = []
    missing: list[Refusal] = []
    for way in ways:
        try:
            engine = make(way)
        except Refusal as error:
            missing.append(error)
        else:
            made += [engine] if engine else []
    if not made:
        raise missing[0]
    need = targets.isl + targets.osl
    fitting = tuple(engine for engine in made if engine.cache_tokens >= need)
    if not fitting:
        needed_gigabytes = (shape.weight_bytes + need * shape.cache_bytes_per_token) / 1e9
        largest = made[-1]
        raise Refusal(
            f"the model does not fit: it and one request of {need} tokens need {needed_gigabytes:.4g} GB, "
            f"but {largest.gpus} x {hardware.gpu.name} have {largest.usable_bytes / 1e9:.4g} GB; "
            "allow more GPUs per engine (hardware.maxNumGpusPerEngine) or a larger type"
        )
    return fitting


def prefill_role(engines: tuple[Engine, ...], configuration: Configuration) -> Role | None:
    """The cheapest engines that only compute prompts. None means: the first token comes too late."""
    return _cheapest(_prefill(engine, configuration) for engine in engines)


def decode_role(engines: tuple[Engine, ...], configuration: Configuration) -> Role | None:
    """The cheapest engines that only compute answers. None means: the tokens come too slowly."""
    return _cheapest(_decode(engine, configuration) for engine in engines)


def cheapest(engines: tuple[Engine, ...], configuration: Configuration) -> Choice:
    """As `chosen`, of all these engines in each role.

    Raises:
        Refusal: the targets cannot be met, or only by more GPUs or replicas than are allowed.
    """
    return chosen(
        engines,
        prefill_role(engines, configuration),
        decode_role(engines, configuration),
        configuration,
    )


def chosen(
    engines: tuple[Engine, ...],
    prefill: Role | None,
    decode: Role | None,
    configuration: Configuration,
) -> Choice:
    """The better of both modes, or the best of the one that is asked for.

    Raises:
        Refusal: the targets cannot be met, or only by more GPUs or replicas than are allowed.
    """
    worker = _cheapest(_worker(engine, configuration) for engine in engines)
    choices = [Choice(Mode.AGGREGATED, (worker,))] if worker else []
    if prefill and decode:
        choices.append(Choice(Mode.DISAGGREGATED, (prefill, decode)))
    allowed = [choice for choice in choices if configuration.mode in (None, choice.mode)]
    if not allowed:
        raise Refusal(_why_not(engines, configuration))
    best = min(allowed, key=lambda choice: (_is_too_many(*choice.roles), choice.gpus, -choice.rate))
    if _is_too_many(*best.roles):
        raise Refusal(
            f"analytic.requestsPerSecond of {configuration.requests_per_second:g} is too high: it takes "
            f"more than {MOST_REPLICAS} replicas of a worker"
        )
    if configuration.budget and best.gpus > configuration.budget:
        raise Refusal(
            f"analytic.maxGpus of {configuration.budget} is too low: {configuration.requests_per_second:g} "
            f"requests per second within the targets need {best.gpus}"
        )
    return best


def _why_not(engines: tuple[Engine, ...], configuration: Configuration) -> str:
    """Which target is out of reach, and what the best engine would need."""
    targets = configuration.targets
    steps = {engine: engine.step_seconds(1, targets.context) for engine in engines}
    quickest = min(engines, key=lambda engine: steps[engine])
    if steps[quickest] > margined(configuration, quickest).itl:
        return (
            f"sla.itl of {targets.itl * 1000:g} ms cannot be met: the fastest engine, {_name(quickest)}, "
            f"needs {steps[quickest] * 1000:.4g} ms per token for a single answer; "
            f"{_possible(targets.itl, margined(configuration, quickest).itl, steps[quickest])}"
        )

    def first(engine: Engine) -> float:
        apart, together = engine.transfer_seconds(targets.isl), steps[engine]
        rest = {Mode.DISAGGREGATED: apart, Mode.AGGREGATED: together, None: min(apart, together)}
        return engine.first_token_seconds(targets.isl) + rest[configuration.mode]

    best = min(engines, key=first)
    if first(best) >= margined(configuration, best).ttft:
        return (
            f"sla.ttft of {targets.ttft * 1000:g} ms cannot be met: the fastest engine, {_name(best)}, needs "
            f"{first(best) * 1000:.4g} ms for a prompt of {targets.isl} tokens; "
            f"{_possible(targets.ttft, margined(configuration, best).ttft, first(best))}"
        )
    return (
        f"sla.ttft of {targets.ttft * 1000:g} ms and sla.itl of {targets.itl * 1000:g} ms cannot "
        "be met together by aggregated workers, whose prompts delay answers; use a disaggregated "
        "graph, or looser targets"
    )


def margined(configuration: Configuration, engine: Engine) -> Targets:
    """The targets that a prediction must meet, so that it meets the real ones with its error added."""
    targets = configuration.targets
    match configuration.room:
        case _ if configuration.margin is not None:
            error = Accuracy(configuration.margin, configuration.margin)
        case Margin.FOUR_OF_FIVE:
            error = engine.margin
        case Margin.MEDIAN:
            error = engine.accuracy
        case Margin.NONE:
            error = Accuracy(0, 0)
    return replace(targets, ttft=targets.ttft / (1 + error.ttft), itl=targets.itl / (1 + error.itl))


def most_answers(engine: Engine, targets: Targets) -> int:
    """How many answers the engine can work on at once: its cache holds as many requests."""
    return max(0, min(MOST_ANSWERS, engine.cache_tokens // (targets.isl + targets.osl)))


def _possible(target: float, margined_target: float, best: float) -> str:
    """What could be asked for instead. A whole millisecond more, so that the advice can be followed."""
    margin = target / margined_target
    least = math.ceil(best * margin * 1000) + 1
    return f"with a margin of {margin - 1:.0%} for the known error, {least} ms is possible"


def _prefill(engine: Engine, configuration: Configuration) -> Role | None:
    targets = margined(configuration, engine)
    alone, apart = engine.prefill_seconds(targets.isl), engine.prompt_seconds(targets.isl)
    outside = FIRST_TOKEN_SECONDS + engine.transfer_seconds(targets.isl)
    slack = (targets.ttft - outside - alone) / apart
    load = 2 * slack / (1 + 2 * slack)
    if slack <= 0 or load <= 0:
        return None
    rate = load / apart
    return Role(engine, rate, _replicas(rate, configuration), ttft=targets.ttft)


def _decode(engine: Engine, configuration: Configuration) -> Role | None:
    targets = margined(configuration, engine)
    answers = _most(
        engine, targets, lambda b: engine.step_seconds(b, targets.context) <= targets.itl
    )
    if not answers:
        return None
    step = engine.step_seconds(answers, targets.context)
    rate = answers / (targets.osl * step)
    return Role(engine, rate, _replicas(rate, configuration), itl=step)


def _worker(engine: Engine, configuration: Configuration) -> Role | None:
    targets = margined(configuration, engine)

    def times(answers: int) -> tuple[float, float]:
        return (
            engine.busy_first_token_seconds(answers, targets.isl, targets.context),
            engine.busy_step_seconds(answers, targets.isl, targets.osl),
        )

    def holds(answers: int) -> bool:
        first, between = times(answers)
        return first <= targets.ttft and between <= targets.itl

    answers = _most(engine, targets, holds)
    if not answers:
        return None
    first, between = times(answers)
    best = answers / (targets.osl * between)
    return Role(engine, best, _replicas(best, configuration), first, between)


def _most(engine: Engine, targets: Targets, holds: Callable[[int], bool]) -> int:
    """The largest number of answers for which `holds` is true, as it is for all smaller ones; else 0."""
    numbers = range(1, most_answers(engine, targets) + 1)
    return bisect_left(numbers, x=True, key=lambda answers: not holds(answers))


def _replicas(rate: float, configuration: Configuration) -> int:
    return max(1, math.ceil(min(configuration.requests_per_second / rate, MOST_REPLICAS + 1)))


def _cheapest(roles: Iterable[Role | None]) -> Role | None:
    return min(
        (role for role in roles if role is not None),
        key=lambda role: (
            _is_too_many(role),
            role.gpus,
            -role.rate * role.replicas,
            role.engine.gpus,
        ),
        default=None,
    )


def _is_too_many(*roles: Role) -> bool:
    return max(role.replicas for role in roles) > MOST_REPLICAS


def _name(engine: Engine) -> str:
    return f"{engine.gpus} x {engine.gpu.name} ({engine.layout})"
