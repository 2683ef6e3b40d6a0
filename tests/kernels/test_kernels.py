"""The real database of AI Configurator, which `make kernels` installs.

It answers what is recorded, so that the other tests, which use the record, are about the real program.
"""

import importlib
import json
import runpy
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from dynamo_operator.requests.api import MOCKED_RESULTS_FILE
from dynamo_profiler.engine import Layout
from dynamo_profiler.kernels import SYSTEMS, KernelEngine, kernel_source
from dynamo_profiler.shape import GPUS, models
from profiler_questions import a_configuration, results_of, steps_and_results

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "profiler_accuracy.py"))
RECORDED = Path(__file__).parents[1] / "simulated/database/aiconfigurator_core/sdk/recorded.csv"


@pytest.mark.parametrize(
    ("name", "gpu", "tensor"),
    [("nvidia/Llama-3.1-70B-Instruct-FP8", "h100_sxm", 4), ("openai/gpt-oss-120b", "h200_sxm", 2)],
)
def test_the_database_answers_what_is_recorded(name: str, gpu: str, tensor: int) -> None:
    model = models()[name]
    source = kernel_source(model.shape, GPUS[gpu], model.config, "vllm")
    engine = source.engine(Layout(tensor))
    assert isinstance(engine, KernelEngine)
    rows = [
        each
        for each in TOOL["_rows"](TOOL["RECORD"])
        if (each["model"], each["gpu"], each["tp"]) == (name, gpu, str(tensor))
    ]
    answers(engine, rows)


def answers(engine: KernelEngine, rows: Sequence[Mapping[str, str]]) -> None:
    assert rows
    for row in rows:
        count, tokens = int(row["count"]), int(row["tokens"])
        latency = (
            engine.kernels.predict_prefill_latency(count, tokens)
            if "prefill" == row["kind"]
            else engine.kernels.decode_step_latency(count, tokens, 2)
        )
        assert float(row["ms"]) == pytest.approx(latency, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "gpu", "backend", "layout"),
    [
        ("Qwen/Qwen3-0.6B", "h100_sxm", "vllm", Layout(1)),
        ("Qwen/Qwen3-32B", "h200_sxm", "trtllm", Layout(2)),
        ("deepseek-ai/DeepSeek-R1", "h200_sxm", "sglang", Layout(8)),
        ("deepseek-ai/DeepSeek-R1", "h200_sxm", "sglang", Layout(1, data=8)),
        ("deepseek-ai/DeepSeek-R1", "h100_sxm", "sglang", Layout(8)),
    ],
    ids=str,
)
def test_the_database_answers_as_the_recorded_one_of_the_cluster_tests(
    name: str, gpu: str, backend: str, layout: Layout
) -> None:
    model = models()[name]
    engine = kernel_source(model.shape, GPUS[gpu], model.config, backend).engine(layout)
    assert isinstance(engine, KernelEngine)
    model_size = f"{model.config['num_hidden_layers']}x{model.config['hidden_size']}"
    key = (model_size, SYSTEMS[gpu], backend, f"{layout.tensor}", f"{layout.data}")
    names = ("model", "system", "backend", "tp", "dp")
    rows = [each for each in TOOL["_rows"](RECORDED) if key == tuple(each[at] for at in names)]
    answers(engine, rows)


def test_a_run_by_kernels_finds_a_graph() -> None:
    known = a_configuration(
        "Qwen/Qwen3-32B", hardware={"gpuType": "h200_sxm"}, analytic={"engine": "kernels"}
    )
    steps, results = steps_and_results(known)
    assert steps[0].message.endswith("by kernels")
    assert "by kernels: ttft" in results.choice.text()


@pytest.mark.parametrize("engine", ["formulas", "kernels"])
@pytest.mark.parametrize("points", [2, 6, 32])
def test_the_planners_data_is_interpolated_as_its_readers_do(engine: str, points: int) -> None:
    """By splines over lengths, and over load and context. Source: `perf_interpolation.py` of Dynamo 0.9."""
    sweep = {"prefillInterpolationGranularity": points, "decodeInterpolationGranularity": points}
    hardware, analytic = {"gpuType": "h200_sxm"}, {"engine": engine, "mode": "disaggregated"}
    results = results_of(a_configuration("Qwen/Qwen3-32B", hardware=hardware, analytic=analytic, sweep=sweep))
    data = results.files[MOCKED_RESULTS_FILE][0]["data"]
    prefill, decode = (json.loads(data[f"{each}_raw_data.json"]) for each in ("prefill", "decode"))
    scipy = importlib.import_module("scipy.interpolate")  # of AI Configurator's dependencies

    lengths, times = prefill["prefill_isl"], prefill["prefill_ttft"]
    spline = scipy.interp1d(lengths, times, kind="cubic")
    between = [float(spline((one + other) / 2)) for one, other in pairwise(lengths)]
    assert all(one < found < other for found, (one, other) in zip(between, pairwise(times), strict=True))

    places = list(zip(decode["x_kv_usage"], decode["y_context_length"], strict=True))
    found = scipy.griddata(places, decode["z_itl"], places, method="cubic")
    assert decode["z_itl"] == pytest.approx(list(map(float, found)), rel=1e-3)
