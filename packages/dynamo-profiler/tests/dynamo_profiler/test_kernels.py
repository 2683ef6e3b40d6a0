"""Both engines agree with what was measured, as the page says and as each result is labelled."""

import runpy
import sys
from pathlib import Path
from statistics import median

import pytest

from dynamo_profiler import Refusal
from dynamo_profiler.engine import FormulaEngine, Layout
from dynamo_profiler.kernels import KernelEngine, kernel_source, source_of
from dynamo_profiler.shape import GPUS, models

TOOL = runpy.run_path(str(Path(__file__).parents[4] / "tools" / "profiler_accuracy.py"))
POINTS = tuple(TOOL["all_points"]())
SWEEPS = tuple(TOOL["with_prompts"]())
FIRST, BETWEEN = "time to the first token", "time between tokens"
LLAMA = models()["nvidia/Llama-3.1-70B-Instruct-FP8"]


@pytest.mark.parametrize("what", [FIRST, BETWEEN])
@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_the_median_of_each_size_is_within_five_percent(what: str, gpus: int) -> None:
    ratios = [sweep.ratio for sweep in SWEEPS if (sweep.metric, sweep.gpus) == (what, gpus)]
    assert 0.95 <= median(ratios) <= 1.05


def test_no_point_of_the_sweeps_is_off_by_more_than_thirty_percent() -> None:
    far = [sweep for sweep in SWEEPS if not 0.7 <= sweep.ratio <= 1.3]
    odd = [entry for entry in far if entry.load == "6205"]
    assert odd == far, "one measured point takes twice as long as its neighbors suggest"


def test_the_plain_step_is_shorter_than_this_sweep_where_prompts_are_long_and_many() -> None:
    """The sweep contains a part of the prompts; a step of one request has none to wait for."""
    plain = [point for point in POINTS if (point.table, point.metric) == ("sweeps", BETWEEN)]
    alone, many = (
        [p.ratio for p in plain if p.load.startswith("1 x") == is_alone] for is_alone in (True, False)
    )
    assert 0.9 <= median(alone) <= 1.1
    assert 0.7 <= median(many) <= 0.85


def test_the_error_that_a_result_is_labelled_with_is_that_of_tables_left_out_of_the_fit() -> None:
    """Rounded up to the next twentieth."""
    left_out = TOOL["left_out"](POINTS)
    assert 80 <= len(left_out)
    for name, label in (("ratio", FormulaEngine.accuracy), ("kernel_ratio", KernelEngine.accuracy)):
        for what, said in ((FIRST, label.ttft), (BETWEEN, label.itl)):
            found = TOOL["error"](getattr(entry, name) for entry in left_out if entry.metric == what)
            assert found <= said < found + 0.05, (name, what)


def test_an_answer_names_the_share_of_measured_times_that_are_within_its_margin() -> None:
    points, within = TOOL["left_out"](POINTS), TOOL["rows_within"]
    for column, engine in (("ratio", FormulaEngine), ("kernel_ratio", KernelEngine)):
        for metric, margin, share in zip((FIRST, BETWEEN), engine.accuracy, engine.within, strict=True):
            assert share == round(within(points, column, metric, margin) / 100, 2)


def test_the_constants_are_near_their_own_fit() -> None:
    kept = dict(TOOL["_KEPT"])
    try:
        fitted = TOOL["fit"]()
    finally:
        TOOL["_set"](kept)
    assert all(0.8 <= fitted[name] / kept[name] <= 1.25 for name in kept), fitted


class Folder:
    """A database that has the recorded kernels of one engine, and notes what it is asked for."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[str, str, dict[str, int | str]]] = []
        self.error = error

    def compile_engine(self, model_path: str, system: str, backend: str, **layout: int | str) -> bytes:
        assert '"architectures"' in (Path(model_path) / "config.json").read_text(encoding="utf-8")
        if self.error:
            raise self.error
        self.asked.append((system, backend, layout))
        return b""

    def EngineHandle(self, spec_bytes: bytes) -> "Steady":  # noqa: ARG002, N802
        return Steady()


class Steady:
    """Kernels with plain times, in milliseconds."""

    def predict_prefill_latency(self, bs: int, isl: int) -> float:
        return bs * isl / 10

    def decode_step_latency(self, gen_tokens: int, isl: int, osl: int) -> float:  # noqa: ARG002
        return gen_tokens + isl / 1000


def test_kernels_are_asked_for_a_layout_and_answer_in_seconds() -> None:
    folder = Folder()
    mixture = models()["openai/gpt-oss-120b"]
    source = kernel_source(mixture.shape, GPUS["gb200_sxm"], mixture.config, "sglang", folder)
    together, apart = source.engine(Layout(4)), source.engine(Layout(2, data=4))
    assert together is not None
    assert apart is not None
    kept = {"kvcache_quant_mode": "bfloat16", "fmha_quant_mode": "bfloat16"}
    experts = {"attention_dp_size": 1, "moe_tp_size": 4, "moe_ep_size": 1}
    assert ("gb200", "sglang", {"tp_size": 4, **kept, **experts}) == folder.asked[0]
    experts = {"attention_dp_size": 4, "moe_tp_size": 1, "moe_ep_size": 8}
    assert ("gb200", "sglang", {"tp_size": 2, **kept, **experts}) == folder.asked[1]
    assert 0.124 == pytest.approx(together.prefill_seconds(1000))
    assert (8 + 1) * 1.1 / 1000 == pytest.approx(together.step_seconds(8, 1000))
    assert (2 + 1) * 1.1 / 1000 == pytest.approx(apart.step_seconds(8, 1000)), "8 over 4 copies"
    assert source.engine(Layout(8, pipeline=2, nodes=2)) is None


@pytest.mark.parametrize(
    ("gpu", "config", "error", "message"),
    [
        ("l4", LLAMA.config, None, r"no measurements of l4; expected one of gb200_sxm, "),
        ("h100_sxm", None, None, r"needs a model of the catalogue, or its config\.json"),
        ("h100_sxm", LLAMA.config, LookupError("no table"), "no measurements for this model on 4 x h1"),
    ],
)
def test_kernels_that_are_not_there_are_refused_with_the_reason(
    gpu: str, config: dict[str, object] | None, error: Exception | None, message: str
) -> None:
    with pytest.raises(Refusal, match=message):
        kernel_source(LLAMA.shape, GPUS[gpu], config, "vllm", Folder(error)).engine(Layout(4))


def test_without_kernels_auto_takes_formulas_and_says_why() -> None:
    source = source_of("auto", LLAMA.shape, GPUS["l4"], LLAMA.config, "vllm")
    assert "formulas" == source.name
    assert "engine kernels has no measurements of l4" == source.note
    with pytest.raises(Refusal, match="no measurements of l4"):
        source_of("kernels", LLAMA.shape, GPUS["l4"], LLAMA.config, "vllm")


def test_kernels_that_are_not_installed_are_named_with_their_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiconfigurator_core", None)
    with pytest.raises(Refusal, match=r"not installed; run `pip install '\./packages/dynamo-profiler\["):
        source_of("kernels", LLAMA.shape, GPUS["h100_sxm"], LLAMA.config, "vllm")
