"""What was measured of a graph under load, and whether it meets the targets."""

import math
from collections.abc import Sequence

from dynamo_profiler.configuration import Targets
from kube_runtime.types.meta import Struct

PERCENTILE = 0.9
"""The share of requests that must be within a target."""
MOST_FAILURES = 0.01
"""The share of requests that may fail."""


class Answered(Struct, frozen=True):
    """One answer that came token by token. Units: seconds to the first, between two; tokens."""

    ttft: float
    itl: float
    tokens: int
    prompt_tokens: int


class Load(Struct, frozen=True):
    """Requests at a constant rate, and what came of them. Units: seconds, requests per second.

    `ttft` and `itl` are what `PERCENTILE` of the answered requests needed at most, `median_*` half of them;
    0 if none was answered. `tokens` and `prompt_tokens` are means. `failure` is the first one.
    """

    rate: float
    requests: int
    failures: int = 0
    failure: str = ""
    ttft: float = 0.0
    itl: float = 0.0
    median_ttft: float = 0.0
    median_itl: float = 0.0
    tokens: float = 0.0
    prompt_tokens: float = 0.0

    def miss(self, targets: Targets) -> str:
        """Why this load misses the targets, in a clause; "" if it meets them."""
        if self.failures > self.requests * MOST_FAILURES:
            return f"{self.failures} of {self.requests} requests failed: {self.failure}"
        for name, value, target in (
            ("ttft", self.ttft, targets.ttft),
            ("itl", self.itl, targets.itl),
        ):
            if value > target:
                return f"{name} of {value * 1000:.4g} ms is above {target * 1000:g} ms"
        return ""

    def text(self) -> str:
        """What was measured, in one line."""
        return (
            f"ttft {self.ttft * 1000:.4g} ms, itl {self.itl * 1000:.4g} ms for {PERCENTILE:.0%} of "
            f"{self.requests} requests, {self.rate:.3g} per second"
        )


class Measured(Struct, frozen=True):
    """A candidate: its graph's name, its workers in a line, its GPUs, and what was measured of it.

    `problem` is why nothing, or not all, was measured; "" if all was.
    """

    graph: str
    choice: str
    gpus: int
    loads: tuple[Load, ...] = ()
    problem: str = ""

    def miss(self, targets: Targets) -> str:
        """Why it does not meet the targets, in a clause; "" if it does."""
        missed = (load.miss(targets) for load in self.loads)
        return self.problem or next(filter(None, missed), "")


def load_of(rate: float, answered: Sequence[Answered], failures: Sequence[str]) -> Load:
    """The load that these answers and failures came from."""
    requests = len(answered) + len(failures)
    failure = failures[0] if failures else ""
    if not answered:
        return Load(rate, requests, len(failures), failure)
    first, between = ([getattr(answer, name) for answer in answered] for name in ("ttft", "itl"))
    return Load(
        rate,
        requests,
        len(failures),
        failure,
        ttft=_within(first, PERCENTILE),
        itl=_within(between, PERCENTILE),
        median_ttft=_within(first, 0.5),
        median_itl=_within(between, 0.5),
        tokens=sum(answer.tokens for answer in answered) / len(answered),
        prompt_tokens=sum(answer.prompt_tokens for answer in answered) / len(answered),
    )


def _within(values: Sequence[float], share: float) -> float:
    """The smallest of the values that this share of them do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
