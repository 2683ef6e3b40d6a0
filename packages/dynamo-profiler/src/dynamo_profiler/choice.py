"""The cheapest engines that meet the targets, over all engine sizes and both modes.

The batch size decides: the larger, the more requests an engine serves, and the longer each takes. So each
engine gets the largest batch with which the targets hold. With t the time of a prompt's prefill, s(b) that of
a decode step with batch b, N output tokens, and f the overhead of a request outside of the engine:

    disaggregated, decode    itl = s(b)                                  rate = b / (N·s(b))
    disaggregated, prefill   ttft = f + t·(1 + u/(2·(1-u))) + transfer   rate = u / t
    aggregated               itl = s(b) + b·t/N                          rate = 1 / (N·s(b)/b + t)
                             ttft = f + t·(1 + 0.2·√b) + s(b)

u is the utilization of a prefill engine; u/(2·(1-u)) is the mean wait in a queue with constant service times
(Pollaczek-Khinchine). In an aggregated engine, prompts that arrive meanwhile delay each output, and prompts
wait for each other as measured. All times grow with b, so bisection finds the largest b. The choice is the
graph with the fewest GPUs for the requested rate; among equals, the one with the highest capacity.

Predictions have known errors. A graph meets a target only if the prediction meets it with the margin added,
by default the median error of the engine; docs/profiler.md says how many measured times are within that.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from dynamo_profiler import Refusal
from dynamo_profiler.configuration import Configuration, Hardware, Mode, Targets
from dynamo_profiler.engine import FIRST_TOKEN_SECONDS, Accuracy, Engine, layouts
from dynamo_profiler.kernels import EngineFactory
from dynamo_profiler.shape import Shape

MAX_BATCH = 1024
"""Requests that an engine decodes together. Source: vLLM's default of `--max-num-seqs` on such GPUs."""

MAX_REPLICAS = 1000

_MEASURE = "measure it to find out (section `online` of a request)"


@dataclass(frozen=True, slots=True)
class Role:
    """The engines of one role: their kind, the highest rate of one of them, and how many there are.

    `batch` is the number of requests that one of them decodes together, 0 for prefill. `ttft` and `itl` are
    the times at that rate, or None where the role has no part in them. Units: seconds, requests per second.
    """

    engine: Engine
    rate: float
    replicas: int
    batch: int = 0
    ttft: float | None = None
    itl: float | None = None

    @property
    def gpus(self) -> int:
        """GPUs of all replicas."""
        return self.replicas * self.engine.gpus


@dataclass(frozen=True, slots=True)
class Choice:
    """The workers of a graph: one role for everything, or prefill and decode.

    `margin` is the error with which the predictions still meet the targets.
    """

    mode: Mode
    roles: tuple[Role, ...]
    margin: Accuracy

    @property
    def gpus(self) -> int:
        """GPUs of all workers."""
        return sum(role.gpus for role in self.roles)

    @property
    def workers(self) -> tuple[object, ...]:
        """What determines its graph: the mode, and the layout and replicas of each role."""
        return (self.mode, *((role.engine.layout, role.replicas) for role in self.roles))

    @property
    def rate(self) -> float:
        """Requests per second that all workers together serve within the targets."""
        return min(role.rate * role.replicas for role in self.roles)

    @property
    def ttft(self) -> float:
        """The time to first token at that rate. Units: seconds."""
        return max(role.ttft for role in self.roles if role.ttft is not None)

    @property
    def itl(self) -> float:
        """The time between tokens at that rate. Units: seconds."""
        return max(role.itl for role in self.roles if role.itl is not None)

    @property
    def accuracy(self) -> Accuracy:
        """The larger measured error of the roles."""
        errors = [role.engine.accuracy for role in self.roles]
        return Accuracy(max(error.ttft for error in errors), max(error.itl for error in errors))

    @property
    def gpu(self) -> str:
        """The type of the GPUs."""
        return self.roles[0].engine.gpu.name

    def workers_text(self) -> str:
        """Replicas and layout of each role, for example `prefill 2 x tp8, decode 1 x tp2`."""
        names = ("prefill ", "decode ") if self.mode is Mode.DISAGGREGATED else ("",)
        parts = zip(names, self.roles, strict=True)
        return ", ".join(f"{name}{role.replicas} x {role.engine.layout}" for name, role in parts)

    def text(self) -> str:
        """The choice and the errors of its times, in one line."""
        first, error = self.roles[0].engine, self.accuracy
        return (
            f"{self.gpus} x {self.gpu}, {self.mode.value}: {self.workers_text()}; by {first.source}: ttft "
            f"{self.ttft * 1000:.4g} ms ± {error.ttft:.0%}, itl {self.itl * 1000:.4g} ms ± {error.itl:.0%}, "
            f"{_per_second(self.rate)}"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """The choice by predictions, and what it would be without a margin for their error.

    `exact` is the cheapest graph if predictions are exact, None if it has as many GPUs as the choice.
    `no_margin` is why no graph leaves the margin; empty if the choice does.
    """

    choice: Choice
    exact: Choice | None = None
    no_margin: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """A graph with a margin and the one if predictions are exact, each with its GPUs and its reason."""
        choice = self.choice
        if not any(choice.margin):
            exact = f"if predictions are exact: {choice.text()}; {_MEASURE}"
            return (exact, f"safer: no graph, {self.no_margin}") if self.no_margin else (exact,)
        safer = f"safer: {choice.text()}; {self._reason}"
        if self.exact is None:
            return (safer, f"if predictions are exact: {choice.gpus} x {choice.gpu} too")
        return (safer, f"if predictions are exact: {self.exact.text()}; {_MEASURE}")

    @property
    def _reason(self) -> str:
        """The margin of the choice, and how often measured times were within it."""
        choice, (ttft, itl) = self.choice, self.choice.margin
        leaves = f"leaves {ttft:.0%} for ttft and {itl:.0%} for itl"
        if choice.margin != choice.accuracy:
            return leaves
        engine = choice.roles[0].engine
        first, between = engine.within
        share = f"{first:.0%} and {between:.0%} of measured times were within it"
        return f"{leaves}, the median error of {engine.source} ({share})"

    def text(self) -> str:
        """The choice in one line."""
        choice, exact = self.choice, self.exact
        if exact is not None:
            return f"{choice.text()}; if predictions are exact, {exact.gpus} GPUs do"
        return f"{choice.text()}{'' if any(choice.margin) else '; no margin for this error'}"


def fitting_engines(
    shape: Shape, hardware: Hardware, targets: Targets, new_engine: EngineFactory
) -> tuple[Engine, ...]:
    """The engines with memory for the model and one request, smallest first.

    Raises:
        Refusal: there is no such engine.
    """
    possible = layouts(
        *(shape, hardware.min_gpus, hardware.max_gpus, hardware.per_node), nodes=hardware.nodes
    )
    if not possible:
        raise Refusal(
            f"no engine of {hardware.min_gpus} to {hardware.max_gpus} GPUs is possible: the model is "
            f"split over a power of two of GPUs that divides its {shape.heads} attention heads"
        )
    engines: list[Engine] = []
    refusals: list[Refusal] = []
    for layout in possible:
        try:
            engine = new_engine(layout)
        except Refusal as error:
            refusals.append(error)
        else:
            engines += [engine] if engine else []
    if not engines:
        raise refusals[0]
    need = targets.isl + targets.osl
    fitting = tuple(engine for engine in engines if engine.cache_tokens >= need)
    if not fitting:
        needed_gigabytes = (shape.weight_bytes + need * shape.cache_bytes_per_token) / 1e9
        largest = engines[-1]
        raise Refusal(
            f"the model does not fit: it and one request of {need} tokens need {needed_gigabytes:.4g} GB, "
            f"but {largest.gpus} x {hardware.gpu.name} have {largest.usable_bytes / 1e9:.4g} GB; "
            "allow more GPUs per engine (hardware.maxNumGpusPerEngine) or a larger type"
        )
    return fitting


Halves: TypeAlias = tuple[Role | None, Role | None]
"""Prefill and decode workers; None where every engine is too slow for the target."""


def prefill_role(engines: tuple[Engine, ...], configuration: Configuration) -> Role | None:
    """The cheapest prefill workers, or None if every first token comes too late."""
    return _cheapest(_prefill(engine, configuration) for engine in engines)


def decode_role(engines: tuple[Engine, ...], configuration: Configuration) -> Role | None:
    """The cheapest decode workers, or None if tokens come too slowly from every engine."""
    return _cheapest(_decode(engine, configuration) for engine in engines)


def cheapest(
    engines: tuple[Engine, ...], configuration: Configuration, halves: Halves | None = None
) -> Choice:
    """The cheaper of the aggregated and the disaggregated graph, or the one of the requested mode.

    `halves` are those of this configuration if they are known already.

    Raises:
        Refusal: the targets cannot be met, or only with more GPUs or replicas than allowed.
    """
    prefill, decode = halves or (prefill_role(engines, configuration), decode_role(engines, configuration))
    worker = _cheapest(_worker(engine, configuration) for engine in engines)
    choices = [aggregated(worker, configuration)] if worker else []
    if prefill and decode:
        choices.append(disaggregated(prefill, decode, configuration))
    allowed = [choice for choice in choices if configuration.mode in (None, choice.mode)]
    if not allowed:
        raise Refusal(_why_not(engines, configuration))
    best = min(allowed, key=lambda choice: (_is_too_many(*choice.roles), choice.gpus, -choice.rate))
    if _is_too_many(*best.roles):
        raise Refusal(
            f"analytic.requestsPerSecond of {configuration.requests_per_second:g} is too high: it takes "
            f"more than {MAX_REPLICAS} replicas of a worker"
        )
    if configuration.budget and best.gpus > configuration.budget:
        raise Refusal(
            f"analytic.maxGpus of {configuration.budget} is too low: "
            f"{_per_second(configuration.requests_per_second)} within the targets needs {best.gpus}"
        )
    return best


def _why_not(engines: tuple[Engine, ...], configuration: Configuration) -> str:
    """The target that is out of reach, and what the best engine needs."""
    targets = configuration.targets
    steps = {engine: engine.step_seconds(1, targets.context) for engine in engines}
    quickest = min(engines, key=lambda engine: steps[engine])
    if steps[quickest] > margined(configuration, quickest).itl:
        return (
            f"sla.itl of {targets.itl * 1000:g} ms cannot be met: the fastest engine, {_name(quickest)}, "
            f"needs {steps[quickest] * 1000:.4g} ms per token for a single answer; "
            f"{_possible(targets.itl, margined(configuration, quickest).itl, steps[quickest])}"
        )

    def ttft(engine: Engine) -> float:
        transfer, step = engine.transfer_seconds(targets.isl), steps[engine]
        rest = {Mode.DISAGGREGATED: transfer, Mode.AGGREGATED: step, None: min(transfer, step)}
        return engine.first_token_seconds(targets.isl) + rest[configuration.mode]

    best = min(engines, key=ttft)
    if ttft(best) >= margined(configuration, best).ttft:
        return (
            f"sla.ttft of {targets.ttft * 1000:g} ms cannot be met: the fastest engine, {_name(best)}, needs "
            f"{ttft(best) * 1000:.4g} ms for a prompt of {targets.isl} tokens; "
            f"{_possible(targets.ttft, margined(configuration, best).ttft, ttft(best))}"
        )
    return (
        f"sla.ttft of {targets.ttft * 1000:g} ms and sla.itl of {targets.itl * 1000:g} ms cannot "
        "be met together by aggregated workers, whose prompts delay answers; use a disaggregated "
        "graph, or looser targets"
    )


def aggregated(worker: Role, configuration: Configuration) -> Choice:
    """The graph with these workers."""
    return Choice(Mode.AGGREGATED, (worker,), margin_of(configuration, worker.engine))


def disaggregated(prefill: Role, decode: Role, configuration: Configuration) -> Choice:
    """The graph with these workers, whose first token comes sooner if decode limits their rate."""
    rate = min(prefill.rate, decode.rate * decode.replicas / prefill.replicas)
    engine, isl = prefill.engine, configuration.targets.isl
    interval = engine.prompt_seconds(isl)
    waiting = interval * rate * interval / (2 * (1 - rate * interval))
    ttft = engine.first_token_seconds(isl) + engine.transfer_seconds(isl) + waiting
    soonest = ttft if prefill.ttft is None else min(ttft, prefill.ttft)  # rounding must not miss a target
    roles = (replace(prefill, ttft=soonest), decode)
    return Choice(Mode.DISAGGREGATED, roles, margin_of(configuration, engine))


def margin_of(configuration: Configuration, engine: Engine) -> Accuracy:
    """The error to leave room for: the configured one, or the median error of the engine."""
    margin = configuration.margin
    return engine.accuracy if margin is None else Accuracy(margin, margin)


def margined(configuration: Configuration, engine: Engine) -> Targets:
    """The targets less the margin: what a prediction must meet so that the real times meet the targets."""
    targets, margin = configuration.targets, margin_of(configuration, engine)
    return replace(targets, ttft=targets.ttft / (1 + margin.ttft), itl=targets.itl / (1 + margin.itl))


def max_batch(engine: Engine, targets: Targets) -> int:
    """The largest batch of an engine: as many requests as fit into its KV cache."""
    return max(0, min(MAX_BATCH, engine.cache_tokens // (targets.isl + targets.osl)))


def _possible(target: float, margined_target: float, best: float) -> str:
    """Name a target that can be met. A whole millisecond more, so that the advice can be followed."""
    margin = target / margined_target
    least = math.ceil(best * margin * 1000) + 1
    known = (
        f"with a margin of {margin - 1:.0%} for the known error" if margin > 1 else "if predictions are exact"
    )
    return f"{known}, {least} ms is possible"


def _prefill(engine: Engine, configuration: Configuration) -> Role | None:
    targets = margined(configuration, engine)
    alone, interval = engine.prefill_seconds(targets.isl), engine.prompt_seconds(targets.isl)
    overhead = FIRST_TOKEN_SECONDS + engine.transfer_seconds(targets.isl)
    slack = (targets.ttft - overhead - alone) / interval
    utilization = 2 * slack / (1 + 2 * slack)
    if slack <= 0 or utilization <= 0:
        return None
    rate = utilization / interval
    return Role(engine, rate, _replicas(rate, configuration), ttft=targets.ttft)


def _decode(engine: Engine, configuration: Configuration) -> Role | None:
    targets = margined(configuration, engine)
    batch = _largest_batch(engine, targets, lambda b: engine.step_seconds(b, targets.context) <= targets.itl)
    return decoder(engine, batch, configuration) if batch else None


def decoder(engine: Engine, batch: int, configuration: Configuration) -> Role:
    """Decode workers for the asked load, each with this batch."""
    targets = configuration.targets
    step = engine.step_seconds(batch, targets.context)
    rate = batch / (targets.osl * step)
    return Role(engine, rate, _replicas(rate, configuration), batch, itl=step)


def _worker(engine: Engine, configuration: Configuration) -> Role | None:
    targets = margined(configuration, engine)

    def meets_targets(batch: int) -> bool:
        ttft, itl = _times(engine, batch, targets)
        return ttft <= targets.ttft and itl <= targets.itl

    batch = _largest_batch(engine, targets, meets_targets)
    return worker(engine, batch, configuration) if batch else None


def worker(engine: Engine, batch: int, configuration: Configuration) -> Role:
    """Workers of an aggregated graph for the asked load, each with this batch."""
    ttft, itl = _times(engine, batch, configuration.targets)
    rate = batch / (configuration.targets.osl * itl)
    return Role(engine, rate, _replicas(rate, configuration), batch, ttft, itl)


def _times(engine: Engine, batch: int, targets: Targets) -> tuple[float, float]:
    """The times to first token and between tokens of a worker that does everything."""
    ttft = engine.busy_first_token_seconds(batch, targets.isl, targets.context)
    return ttft, engine.busy_step_seconds(batch, targets.isl, targets.osl)


def _largest_batch(engine: Engine, targets: Targets, meets_targets: Callable[[int], bool]) -> int:
    """The largest batch that meets the targets, as all smaller ones do; 0 if none does."""
    sizes = range(1, max_batch(engine, targets) + 1)
    return bisect_left(sizes, x=True, key=lambda batch: not meets_targets(batch))


def _replicas(rate: float, configuration: Configuration) -> int:
    return max(1, math.ceil(min(configuration.requests_per_second / rate, MAX_REPLICAS + 1)))


def _cheapest(roles: Iterable[Role | None]) -> Role | None:
    return min(
        (role for role in roles if role is not None),
        key=lambda role: (_is_too_many(role), role.gpus, -role.rate * role.replicas, role.engine.gpus),
        default=None,
    )


def _is_too_many(*roles: Role) -> bool:
    return max(role.replicas for role in roles) > MAX_REPLICAS


def _per_second(rate: float) -> str:
    number = f"{rate:.3g}"
    return f"{number} request{'' if number == '1' else 's'} per second"


def _name(engine: Engine) -> str:
    return f"{engine.gpus} x {engine.gpu.name} ({engine.layout})"
