"""The profiler's configuration is read in both spellings; all that makes no sense is refused in one line."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_profiler import REFUSAL_CHARACTERS, Refusal
from dynamo_profiler.configuration import read_configuration, with_hardware
from dynamo_profiler.shape import GPUS, NodeGpus, best_nodes
from kube_runtime.types.meta import Object
from profiler_questions import a_configuration, results_of

LEAST = {"deployment": {"model": "a/8B"}, "engine": {"backend": "vllm"}}


@pytest.mark.parametrize(
    ("camel", "snake"),
    [
        ({"hardware": {"maxNumGpusPerEngine": 2}}, {"hardware": {"max_num_gpus_per_engine": 2}}),
        ({"outputDir": "/x"}, {"output_dir": "/x"}),
        ({"sweep": {"aicSystem": "l4"}}, {"sweep": {"aic_system": "l4"}}),
    ],
)
def test_both_spellings_are_the_same_key(camel: dict[str, Any], snake: dict[str, Any]) -> None:
    one, other = read_configuration({**LEAST, **camel}), read_configuration({**LEAST, **snake})
    assert one == other != read_configuration(LEAST)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"engine": {}}, "engine.backend must be one of vllm, sglang, trtllm, and is ''"),
        ({"engine": 3}, "engine must be a mapping, and is 3"),
        (
            {"sweep": {"aicSystem": "x1"}},
            f'sweep.aicSystem: unknown GPU "x1" (expected one of {", ".join(GPUS)})',
        ),
        ({"deployment": {}}, "deployment.model must be the name of a model, and is ''"),
        ({"sla": {"ttft": 0}}, "sla.ttft must be above 0 and at most 3.6e+06, and is 0"),
        ({"sla": {"itl": "10"}}, "sla.itl must be a number, and is '10'"),
        ({"sla": {"itl": float("nan")}}, "sla.itl must be a number, and is nan"),
        ({"sla": {"itl": float("inf")}}, "sla.itl must be above 0 and at most 3.6e+06, and is inf"),
        ({"sla": {"isl": True}}, "sla.isl must be a whole number, and is True"),
        ({"sla": {"isl": 1.5}}, "sla.isl must be a whole number, and is 1.5"),
        ({"sla": {"isl": 10**30}}, f"sla.isl must be from 1 to 10000000, and is {10**30}"),
        ({"sla": {"osl": 1}}, "sla.osl must be from 2 to 10000000, and is 1"),
        (
            {"hardware": {"minNumGpusPerEngine": 16}},
            (
                "hardware.minNumGpusPerEngine is 16, but an engine may have at most 8; "
                "an engine stays on one node"
            ),
        ),
        ({"analytic": {"mode": "both"}}, "analytic.mode must be aggregated or disaggregated, and is 'both'"),
        ({"outputDir": 3}, "outputDir must be a string, and is 3"),
        (
            {"hardware": {"numGpusPerNode": "many", "minNumGpusPerEngine": 16}},
            "hardware.numGpusPerNode must be a whole number, and is 'many'",
        ),
        (
            {"online": {}, "sweep": {"useAiConfigurator": True}},
            "sweep.useAiConfigurator: must not be true beside the section online",
        ),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(given: Object, message: str) -> None:
    with pytest.raises(Refusal) as refusal:
        read_configuration({**LEAST, **given})
    assert message == str(refusal.value)


def test_a_document_that_is_not_a_mapping_is_refused() -> None:
    with pytest.raises(Refusal, match="the configuration must be a mapping"):
        read_configuration([])


def test_all_problems_are_reported_at_once_with_their_paths() -> None:
    hardware = {"maxNumGpusPerEngine": "two", "minNumGpusPerEngine": 16, "gpuType": "x1"}
    with pytest.raises(Refusal) as refusal:
        read_configuration(
            {
                "engine": {"backend": "onnx", "maxContextLength": -1},
                "sla": {"isl": "long", "ttft": 0},
                "hardware": hardware,
                "analytic": {"mode": 3, "parametersBillions": True},
            }
        )
    said = str(refusal.value).split("; ")
    assert [
        "analytic.mode",
        "analytic.parametersBillions",
        "deployment.model",
        "engine.backend",
        "engine.maxContextLength",
        "hardware.gpuType",
        "hardware.maxNumGpusPerEngine",
        "sla.isl",
        "sla.ttft",
    ] == sorted(entry.split()[0].rstrip(":") for entry in said)


def test_more_mistakes_than_a_status_holds_are_counted() -> None:
    many = {str(entry) * 40: ["x"] for entry in range(100)}
    with pytest.raises(Refusal, match=r"\(and \d+ more\)$") as refusal:
        results_of(a_configuration(planner=many))
    assert len(str(refusal.value)) <= REFUSAL_CHARACTERS


@pytest.mark.parametrize("key", ["a b", "--x", "x;y", ""])
def test_an_invalid_flag_of_the_planner_is_refused(key: str) -> None:
    with pytest.raises(Refusal, match="must be a flag of the planner with one plain value"):
        results_of(a_configuration(planner={key: 1}))


def test_a_prompt_that_the_model_cannot_take_is_refused() -> None:
    known = a_configuration(engine={"maxContextLength": 2000})
    with pytest.raises(Refusal, match="make 2200 tokens, but the model accepts at most 2000"):
        results_of(known)


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
sections = st.dictionaries(
    st.sampled_from(
        [
            *("isl", "osl", "ttft", "itl", "gpuType", "maxNumGpusPerEngine", "mode", "maxGpus", "x"),
            *("requestsPerSecond", "parametersBillions", "secondsPerPhase", "modelCache", "config"),
            *("maxContextLength", "decodeInterpolationGranularity", "numGpusPerNode"),
        ]
    ),
    leaves | st.dictionaries(st.sampled_from(["pvcName", "mountPath", "pvcPath"]), leaves),
)
NAMES = ["sla", "hardware", "sweep", "analytic", "planner", "deployment", "engine", "outputDir"]
anything = st.dictionaries(st.sampled_from(NAMES), sections | leaves)


@given(anything)
def test_any_document_is_read_or_refused(document: dict[str, Any]) -> None:
    deployment, engine = document.get("deployment"), document.get("engine")
    document["deployment"] = {**(deployment if isinstance(deployment, dict) else {}), "model": "8B"}
    document["engine"] = {**(engine if isinstance(engine, dict) else {}), "backend": "vllm"}
    said = ""
    try:
        results_of(read_configuration(document))
    except Refusal as refusal:
        said = str(refusal)
    assert "\n" not in said
    assert len(said) <= REFUSAL_CHARACTERS


H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.memory": "81559"}


def test_the_best_nodes_are_those_with_the_most_gpus_then_with_the_most_memory() -> None:
    l4 = {"nvidia.com/gpu.product": "NVIDIA-L4", "nvidia.com/gpu.memory": "23034"}
    nodes = [
        NodeGpus({**l4, "nvidia.com/gpu.count": "4"}, {}),
        NodeGpus({**H100, "nvidia.com/gpu.count": "4"}, {}),
        NodeGpus(H100, {"nvidia.com/gpu": "2"}),
        NodeGpus({}, {"nvidia.com/gpu": "16"}),
        NodeGpus({"nvidia.com/gpu.product": "NVIDIA-B200", "nvidia.com/gpu.count": "many"}, {}),
    ]
    gpu, count = best_nodes(nodes)
    assert ("h100_sxm", 4, 81559 * 2**20) == (gpu.name, count, gpu.memory_bytes)


def test_what_the_nodes_have_counts_more_than_what_is_said() -> None:
    known = a_configuration(hardware={"gpuType": "a10", "maxNumGpusPerEngine": 8})
    found = with_hardware(known, GPUS["h200_sxm"], 4).hardware
    assert ("h200_sxm", 4, 1, False) == (found.gpu.name, found.max_gpus, found.min_gpus, found.is_assumed)


@pytest.mark.parametrize(
    ("fields", "measures"),
    [
        ({}, False),
        ({"online": {}}, True),
        ({"sweep": {"useAiConfigurator": False}}, True),
        ({"sweep": {"useAiConfigurator": True}}, False),
    ],
)
def test_it_measures_only_if_it_is_asked_to(fields: Object, measures: bool) -> None:
    assert measures == (read_configuration({**LEAST, **fields}).online is not None)


@pytest.mark.parametrize(
    "url", ["", "frontend:8000", "ftp://f", "http://", "http://[", "{frontend:>999999999}"]
)
def test_a_frontend_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(Refusal, match=r"^online\.frontendUrl must be a URL"):
        read_configuration({**LEAST, "online": {"frontendUrl": url}})
