"""What the planner and the simulated engines read: how long prefill and decode take over their whole range.

As sweeps of real engines measure it: one request for the prefill, a burst of requests for the decode. The
readers of Dynamo 0.9 interpolate by cubic splines, which take four lengths at least, and no length twice.

Units there: milliseconds, tokens per second and GPU.
"""

from dynamo_profiler.engine import Engine
from kube_runtime.kind import Object

_SHORTEST = 100
_LEAST_LENGTHS = 4
_LEAST_LOAD, _MOST_LOAD = 0.05, 0.95


def prefill_curve(engine: Engine, longest: int, points: int) -> Object:
    """Time to the first token by length of the prompt, evenly over the range."""
    lengths = _lengths(longest, max(points, _LEAST_LENGTHS))
    times = [engine.first_token_seconds(each) for each in lengths]
    return {
        "prefill_isl": lengths,
        "prefill_ttft": [_short(1000 * each) for each in times],
        "prefill_thpt_per_gpu": [
            _short(length / time / engine.gpus) for length, time in zip(lengths, times, strict=True)
        ],
    }


def decode_curve(engine: Engine, longest: int, points: int) -> Object:
    """Time between tokens by length of the context and by how full the cache is."""
    rows: list[tuple[float, ...]] = []
    capacity = engine.cache_tokens
    for context in _lengths(min(longest, capacity), points):
        for step in range(points):
            share = _LEAST_LOAD + (_MOST_LOAD - _LEAST_LOAD) * step / (points - 1)
            answers = max(1, min(round(share * capacity / context), capacity // context))
            seconds = engine.burst_seconds(answers, context)
            rate = answers / seconds / engine.gpus
            rows.append((answers * context / capacity, context, 1000 * seconds, rate))
    names = ("x_kv_usage", "y_context_length", "z_itl", "z_thpt_per_gpu")
    columns = zip(*rows, strict=True)
    found = {name: [_short(x) for x in column] for name, column in zip(names, columns, strict=True)}
    return {**found, "max_kv_tokens": capacity}


def _lengths(longest: int, points: int) -> list[int]:
    """Evenly from 100 to the longest one, each greater than the one before."""
    last = max(longest, _SHORTEST)
    first = min(longest, _SHORTEST, last - points + 1)
    return [first + (last - first) * each // (points - 1) for each in range(points)]


def _short(value: float) -> float:
    """Six digits: the formulas are worth fewer, and the file has a limit."""
    return float(f"{value:.6g}")
