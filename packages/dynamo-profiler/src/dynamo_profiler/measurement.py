"""Measurements of a graph under load, and whether they meet the targets."""

import math
from collections.abc import Sequence

from dynamo_profiler.configuration import Targets
from kube_runtime.types.meta import Struct

PERCENTILE = 0.9
"""The percentile of the times that must be within a target."""
MAX_FAILURES = 0.01
"""The share of requests that may fail."""


class Response(Struct, frozen=True):
    """The times of one streamed response. Units: seconds, tokens."""

    ttft: float
    itl: float
    tokens: int
    prompt_tokens: int


class Load(Struct, frozen=True):
    """The results of requests at a constant rate. Units: seconds, requests per second.

    `ttft` and `itl` are the `PERCENTILE` of the successful requests, `median_*` their medians; 0 if all
    failed. `tokens` and `prompt_tokens` are means. `failure` is the first failure.
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
        """Why this load misses the targets, as a clause; empty if it meets them."""
        if self.failures > self.requests * MAX_FAILURES:
            return f"{self.failures} of {self.requests} requests failed: {self.failure}"
        for name, value, target in (
            ("ttft", self.ttft, targets.ttft),
            ("itl", self.itl, targets.itl),
        ):
            if value > target:
                return f"{name} of {value * 1000:.4g} ms is above {target * 1000:g} ms"
        return ""

    def text(self) -> str:
        """The measurements in one line."""
        return (
            f"ttft {self.ttft * 1000:.4g} ms, itl {self.itl * 1000:.4g} ms for {PERCENTILE:.0%} of "
            f"{self.requests} requests, {self.rate:.3g} per second"
        )


class Measured(Struct, frozen=True):
    """A measured candidate: its graph's name, its workers in one line, its GPUs, and its loads.

    `problem` is why loads are missing; empty if none are.
    """

    graph: str
    choice: str
    gpus: int
    loads: tuple[Load, ...] = ()
    problem: str = ""

    def miss(self, targets: Targets) -> str:
        """Why it misses the targets, as a clause; empty if it meets them."""
        missed = (load.miss(targets) for load in self.loads)
        return self.problem or next(filter(None, missed), "")


def load_of(rate: float, responses: Sequence[Response], failures: Sequence[str]) -> Load:
    """Summarize the responses and failures of one load."""
    requests = len(responses) + len(failures)
    failure = failures[0] if failures else ""
    if not responses:
        return Load(rate, requests, len(failures), failure)
    ttfts, itls = ([getattr(response, name) for response in responses] for name in ("ttft", "itl"))
    return Load(
        rate,
        requests,
        len(failures),
        failure,
        ttft=_percentile(ttfts, PERCENTILE),
        itl=_percentile(itls, PERCENTILE),
        median_ttft=_percentile(ttfts, 0.5),
        median_itl=_percentile(itls, 0.5),
        tokens=sum(response.tokens for response in responses) / len(responses),
        prompt_tokens=sum(response.prompt_tokens for response in responses) / len(responses),
    )


def _percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values does not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]
