"""The load on frontends, from the difference of two scrapes of their metrics. Pure.

Counters are summed over all models and labels. Other metrics are skipped, in time linear to their length.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_PREFIX = "dynamo_frontend_"
_REQUESTS = "requests_total"
_IN_FLIGHT = "inflight_requests"
_TTFT = "time_to_first_token_seconds"
_ITL = "inter_token_latency_seconds"
_ISL, _OSL = "input_sequence_tokens", "output_sequence_tokens"
_READ = frozenset(
    (
        *(_REQUESTS, _IN_FLIGHT),
        *(f"{metric}_{part}" for metric in (_TTFT, _ITL, _ISL, _OSL) for part in ("sum", "count")),
    )
)

Sample = Mapping[str, float]
"""Values of one scrape, by the names of the metrics without their prefix."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load on frontends between two scrapes; None where there was nothing to measure.

    `requests` is per second, `in_flight` a number of requests, `ttft` and `itl` are mean seconds, `isl`
    and `osl` mean tokens of prompts and answers.
    """

    requests: float | None = None
    in_flight: float | None = None
    ttft: float | None = None
    itl: float | None = None
    isl: float | None = None
    osl: float | None = None


def sample_of(text: str) -> Sample:
    """The values of a scrape in the text format of Prometheus; {} if no frontend wrote it."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith(_PREFIX):
            continue
        name, value = _parts(line)
        key = name.removeprefix(_PREFIX)
        if key in _READ and (number := _number(value)) is not None:
            values[key] = values.get(key, 0.0) + number
    return values


def load_of(pairs: Iterable[tuple[Sample, Sample]], seconds: float) -> Load:
    """The load on several frontends, each with two scrapes that many seconds apart."""
    measured = [(before, after) for before, after in pairs if after]
    if not measured or seconds <= 0:
        return Load()

    def passed(key: str) -> float:
        return sum(
            _increase(before.get(key, 0.0), after.get(key, 0.0)) for before, after in measured
        )

    def mean(key: str) -> float | None:
        count = passed(f"{key}_count")
        return passed(f"{key}_sum") / count if count else None

    in_flight = sum(after.get(_IN_FLIGHT, 0.0) for _, after in measured)
    means = (mean(metric) for metric in (_TTFT, _ITL, _ISL, _OSL))
    return Load(passed(_REQUESTS) / seconds, in_flight, *means)


def _increase(before: float, after: float) -> float:
    """The increase of a counter, which restarts at 0 with its process."""
    return after - before if after >= before else after


def _parts(line: str) -> tuple[str, str]:
    """The name and the value of a line; labels may contain spaces, and a time may follow the value."""
    name, brace, rest = line.partition("{")
    if not brace:
        name, _, rest = line.partition(" ")
        return name, rest.strip().partition(" ")[0]
    return name, rest.rpartition("}")[2].strip().partition(" ")[0]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
