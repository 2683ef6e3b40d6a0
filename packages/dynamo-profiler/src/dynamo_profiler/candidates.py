"""The graphs that a choice was made from, as rows, and the best of them."""

from collections.abc import Iterable
from dataclasses import dataclass
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
