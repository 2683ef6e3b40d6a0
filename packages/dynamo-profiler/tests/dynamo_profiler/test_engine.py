"""The formulas grow and shrink as they must; `test_kernels.py` compares them with measured times."""

import math

from hypothesis import given
from hypothesis import strategies as st

from dynamo_profiler.engine import FormulaEngine, Layout
from dynamo_profiler.shape import GPUS, Shape

shapes = st.builds(
    lambda billions, share, layers, width, size: Shape(
        billions * 1e9, billions * 1e9 * share, layers, width, max(1, width // 8), size
    ),
    st.floats(0.1, 1000),
    st.floats(0.02, 1),
    st.integers(1, 200),
    st.integers(128, 20000),
    st.sampled_from([0.5, 1, 2]),
)
engines = st.builds(
    FormulaEngine, shapes, st.sampled_from(list(GPUS.values())), st.sampled_from([1, 2, 4, 8, 16]).map(Layout)
)


@given(engines, st.integers(1, 1000), st.integers(1, 1000), st.integers(1, 10**6))
def test_more_answers_at_once_are_slower_each_and_faster_together(
    engine: FormulaEngine, few: int, more: int, context: int
) -> None:
    one, both = (engine.step_seconds(batch, context) for batch in (few, few + more))
    assert one <= both
    assert few / one <= (few + more) / both * (1 + 1e-9)


@given(engines, st.integers(1, 1000), st.integers(1, 10**6))
def test_more_gpus_in_an_engine_cost_no_more_than_what_they_exchange(
    engine: FormulaEngine, answers: int, context: int
) -> None:
    larger = FormulaEngine(engine.shape, engine.gpu, Layout(2 * engine.gpus))
    exchanged = larger._exchange_seconds(context)
    assert larger.prefill_seconds(context) <= engine.prefill_seconds(context) + exchanged
    exchanged = larger._exchange_seconds(answers)
    assert larger.step_seconds(answers, context) <= engine.step_seconds(answers, context) + exchanged
    assert larger.cache_tokens >= engine.cache_tokens


def test_the_table_has_no_nonsense() -> None:
    for name, gpu in GPUS.items():
        assert name == gpu.name
        intensity = gpu.flops / gpu.bytes_per_second
        assert 100 < intensity < 500, "operations per byte, as all such GPUs have them"
        assert math.isfinite(gpu.memory_bytes)
