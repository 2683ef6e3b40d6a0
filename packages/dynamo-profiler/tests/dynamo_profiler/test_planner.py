"""The planner's data has what its readers need, from both engines.

`tests/kernels` reads it as they do, and a real simulated engine does in `tests/e2e`.
"""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_profiler.engine import Engine, FormulaEngine, Layout
from dynamo_profiler.kernels import KernelEngine
from dynamo_profiler.planner import data_config_map, decode_curve, prefill_curve
from dynamo_profiler.shape import GPUS, Shape

SHAPE = Shape(8e9, 8e9, 32, 4096, 1024, 2)


class Kernels:
    """Plain times, in milliseconds."""

    def predict_prefill_latency(self, bs: int, isl: int) -> float:
        return bs * isl / 100

    def decode_step_latency(self, gen_tokens: int, isl: int, osl: int) -> float:
        return gen_tokens / 10 + (isl + osl) / 1000


ENGINES = (
    FormulaEngine(SHAPE, GPUS["h100_sxm"], Layout(1)),
    KernelEngine(SHAPE, GPUS["h100_sxm"], Layout(2), kernels=Kernels()),
)


def is_ascending(values: list[float]) -> bool:
    return sorted(set(values)) == values


@pytest.mark.parametrize("engine", ENGINES, ids=lambda it: it.source)
@given(longest=st.integers(3, 10**6), points=st.integers(2, 32))
def test_cubic_splines_go_through_all_lengths(engine: Engine, longest: int, points: int) -> None:
    prefill, decode = (prefill_curve(engine, longest, points), decode_curve(engine, longest, points))
    data = data_config_map(prefill, decode)["data"]
    assert {"prefill_raw_data.json": prefill, "decode_raw_data.json": decode} == {
        name: json.loads(text) for name, text in data.items()
    }

    lengths = prefill["prefill_isl"]
    assert max(points, 4) == len(lengths) == len(prefill["prefill_ttft"])
    assert is_ascending(lengths)
    assert lengths[0] >= 1
    assert max(longest, 100) == lengths[-1]

    contexts = decode["y_context_length"]
    assert is_ascending(contexts[::points])
    assert all(len(set(contexts[at : at + points])) == 1 for at in range(0, points**2, points))
    capacity = engine.cache_tokens
    assert capacity == decode["max_kv_tokens"]
    columns = decode["x_kv_usage"], contexts, decode["z_itl"], decode["z_thpt_per_gpu"]
    for share, context, itl, rate in zip(*columns, strict=True):
        assert 0 < share <= 1
        answers = share * capacity / context
        assert math.isclose(answers * 1000, rate * engine.gpus * itl, rel_tol=1e-4)
