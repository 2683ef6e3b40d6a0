"""What the profiler writes: graphs that admission accepts, made of the base and of the choice."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dynamo_graphs.offline import expanded
from dynamo_graphs.versions import VERSIONS, Version, in_version
from dynamo_operator.requests.api import MOCKED_RESULTS_FILE, RESULTS_FILE, DynamoGraphDeploymentRequest
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamo_profiler import Refusal
from dynamo_profiler import kernels as sources
from dynamo_profiler.base import BACKENDS
from dynamo_profiler.configuration import read_configuration
from dynamo_profiler.engine import Engine, Layout
from dynamo_profiler.planner import planner_service
from dynamo_profiler.request import configuration_of
from dynamo_profiler.run import Inputs, profile
from dynamoctl.authoring.lint import findings_of
from dynamoctl.authoring.manifest import read_manifests
from kube_runtime.types.meta import Object
from profiler_questions import a_configuration, graph_of, results_of, steps_and_results, workers_of

EXAMPLES = Path(__file__).parents[4] / "examples"
BASES = [
    (backend, mode) for backend in ("vllm", "sglang", "trtllm") for mode in ("aggregated", "disaggregated")
]
TOKEN = {"secretRef": {"name": "hf-token-secret", "optional": True}}
SETTINGS = RenderSettings(planner_cluster_role_name="planner")


def example(name: str, version: Version = "v1alpha1") -> list[Any]:
    documents = yaml.safe_load_all((EXAMPLES / f"{name}.yaml").read_text(encoding="utf-8"))
    return [in_version(document, version) for document in documents]


def without_args(worker: Object) -> Object:
    """The container of a worker, without what the profiler chooses."""
    return {**worker["extraPodSpec"]["mainContainer"], "args": None}


def flags_of(worker: Object) -> list[str]:
    found: list[str] = worker["extraPodSpec"]["mainContainer"]["args"]
    return found


@given(
    st.sampled_from(BASES),
    st.sampled_from(["Qwen/Qwen3-0.6B", "a/30B-A3B-FP8", "Ünï/70B 'x' #y", "a/8B: {z}"]),
    st.booleans(),
    st.sampled_from([0.1, 3, 40]),
    st.sampled_from(["", "chat"]),
)
def test_every_graph_is_accepted_and_rendered(
    base: tuple[str, str], model: str, has_planner: bool, load: float, name: str
) -> None:
    backend, mode = base
    sections: dict[str, Any] = {"analytic": {"mode": mode, "requestsPerSecond": load}}
    if has_planner and mode == "disaggregated":
        sections["planner"] = {"minEndpoint": 2}
    results = results_of(a_configuration(model, backend, **sections), Inputs(name=name))
    for is_mocked in (False, True):
        graph = graph_of(results, is_mocked=is_mocked)
        document = {**graph, "metadata": {**graph["metadata"], "namespace": "default"}}
        expansion = expanded(document, Facts(), SETTINGS)
        assert () == expansion.problems
        deployments = [entry for entry in expansion.objects if entry["kind"] == "Deployment"]
        assert len(graph["spec"]["services"]) == len(deployments)
        secrets = [
            source
            for deployment in deployments
            for container in deployment["spec"]["template"]["spec"]["containers"]
            for source in container.get("envFrom", ())
        ]
        # Public models need no token, so workers start without it.
        assert secrets == [TOKEN] * len(workers_of(graph))
        for documents in results.files.values():
            others = [item["kind"] for item in documents if item["kind"] != graph["kind"]]
            assert set(others) <= {"ConfigMap"}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("backend", "mode"), BASES)
def test_an_example_as_base_keeps_all_that_is_not_chosen(backend: str, mode: str, version: Version) -> None:
    base = example(f"{backend}-{mode}", version)
    before = json.dumps(base)
    known = a_configuration("acme/tiny-7B", backend, hardware={"minNumGpusPerEngine": 2})
    graph = graph_of(results_of(known, Inputs(base=base)))
    assert before == json.dumps(base)
    base = example(f"{backend}-{mode}")
    assert base[0]["metadata"]["name"] == graph["metadata"]["name"]
    assert list(base[0]["spec"]["services"]) == list(graph["spec"]["services"])
    for key, worker in workers_of(graph).items():
        old = base[0]["spec"]["services"][key]
        flags = flags_of(worker)
        assert "acme/tiny-7B" in flags
        assert "Qwen/Qwen3-0.6B" not in flags
        assert set(flags_of(old)) - set(flags) <= {"Qwen/Qwen3-0.6B", "1"}
        assert old["extraPodSpec"]["mainContainer"]["envFrom"]
        assert without_args(old) == without_args(worker)
        assert "2" == worker["resources"]["limits"]["gpu"]
    assert base[0]["spec"]["services"]["Frontend"] == graph["spec"]["services"]["Frontend"]


def test_the_image_of_the_request_is_that_of_the_workers_and_without_a_base_of_all_services() -> None:
    known = a_configuration(deployment={"dgd_image": "all:2"}, planner={})
    based = a_configuration(deployment={"dgd_image": "all:2"})
    base = Inputs(base=example("vllm-aggregated"))
    for graph, own in (
        (graph_of(results_of(based, base)), {"Frontend"}),
        (graph_of(results_of(known)), set[str]()),
        (graph_of(results_of(known), is_mocked=True), set[str]()),
    ):
        for key, service in graph["spec"]["services"].items():
            image = service["extraPodSpec"]["mainContainer"]["image"]
            assert (key in own) == (image != "all:2")


def test_a_planner_gets_the_curves_the_targets_and_the_users_options() -> None:
    planner = {"minEndpoint": 2, "planner_no_operation": True, "itl": 9, "namespace": "x"}
    known = a_configuration(planner=planner, hardware={"minNumGpusPerEngine": 2})
    results = results_of(known)
    data, graph = results.files[RESULTS_FILE]
    assert "planner-profile-data" == data["metadata"]["name"]
    service = graph["spec"]["services"]["Planner"]
    pod = service["extraPodSpec"]
    assert "planner" == service["componentType"]
    assert [{"name": data["metadata"]["name"]}] == [x["configMap"] for x in pod["volumes"]]
    assert [
        *("--environment=kubernetes", "--backend=vllm", "--ttft=2000", "--itl=9"),
        *("--min-endpoint=2", "--no-operation"),
        *("--prefill-engine-num-gpu=2", "--decode-engine-num-gpu=2"),
        "--profile-results-dir=/workspace/profiling_results",
    ] == pod["mainContainer"]["args"]
    mocked = graph_of(results, is_mocked=True)["spec"]["services"]["Planner"]
    assert "--backend=mocker" in mocked["extraPodSpec"]["mainContainer"]["args"]


def test_a_planner_knows_the_gpus_of_both_halves() -> None:
    known = a_configuration(planner={}, hardware={"minNumGpusPerEngine": 2})
    choice = results_of(known).choice
    assert choice is not None
    prefill, decode = choice.roles
    engine = replace(decode.engine, layout=Layout(4))
    unequal = replace(choice, roles=(prefill, replace(decode, engine=engine)))
    flags = flags_of(planner_service(known, unequal, "i:1", "vllm"))
    assert {"--prefill-engine-num-gpu=2", "--decode-engine-num-gpu=4"} <= {*flags}


def test_an_option_of_a_planner_may_be_zero_and_one_that_is_off_is_left_out() -> None:
    planner = {"minEndpoint": 0, "loadPredictionWindow": 0.0, "noOperation": False}
    known = a_configuration(planner=planner)
    choice = results_of(known).choice
    assert choice is not None
    flags = flags_of(planner_service(known, choice, "i:1", "vllm"))
    assert {"--min-endpoint=0", "--load-prediction-window=0"} <= {*flags}
    assert not any(flag.startswith("--no-operation") for flag in flags)


def test_a_planner_in_the_base_is_replaced() -> None:
    base = example("vllm-planner")
    graph = graph_of(results_of(a_configuration(planner={}), Inputs(base=base)))
    services = graph["spec"]["services"]
    assert set(base[0]["spec"]["services"]) == set(services)
    volumes = services["Planner"]["extraPodSpec"]["volumes"]
    assert ["planner-profile-data"] == [volume["configMap"]["name"] for volume in volumes]


def test_the_curves_are_the_formulas_in_milliseconds() -> None:
    results = results_of(a_configuration())
    data = results.files[MOCKED_RESULTS_FILE][0]["data"]
    prefill, decode = (json.loads(data[f"{x}_raw_data.json"]) for x in ("prefill", "decode"))
    first, last = results.choice.roles[0].engine, results.choice.roles[-1].engine
    for tokens, time in zip(prefill["prefill_isl"], prefill["prefill_ttft"], strict=True):
        assert time == pytest.approx(1000 * first.first_token_seconds(tokens), rel=1e-4)
    assert last.cache_tokens == decode["max_kv_tokens"]
    columns = (decode[entry] for entry in ("x_kv_usage", "y_context_length", "z_itl"))
    for share, context, time in zip(*columns, strict=True):
        answers = share * last.cache_tokens / context
        assert time == pytest.approx(1000 * last.step_seconds(answers, context), rel=1e-4)


def test_the_files_stay_small_at_the_finest_grain() -> None:
    sweep = {"prefillInterpolationGranularity": 32, "decodeInterpolationGranularity": 32}
    files = results_of(a_configuration(sweep=sweep, planner={})).files
    assert sum(len(yaml.safe_dump_all(file)) for file in files.values()) < 250_000


def test_simulated_engines_need_no_gpu() -> None:
    for mode in ("aggregated", "disaggregated"):
        results = results_of(a_configuration(analytic={"mode": mode, "requestsPerSecond": 30}))
        mocked = workers_of(graph_of(results, is_mocked=True))
        real = workers_of(graph_of(results))
        assert {key: each["replicas"] for key, each in real.items()} == {
            key: each["replicas"] for key, each in mocked.items()
        }
        assert all("resources" not in service for service in mocked.values())


def later(**fields: Any) -> Object:
    """An example in v1beta1, with other fields."""
    return {**example("vllm-aggregated", "v1beta1")[0], **fields}


def changed(path: str, value: Any) -> list[Any]:
    """An example with one field changed; None takes it away."""
    base = example("vllm-aggregated")
    *parents, last = path.split(".")
    place = base[0]
    for parent in parents:
        place = place[parent]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return base


MAIN = "spec.services.Worker.extraPodSpec.mainContainer"


@pytest.mark.parametrize(
    ("base", "message"),
    [
        (2 * example("vllm-aggregated"), "must be one DynamoGraphDeployment, but the file has 2"),
        ([{"kind": "ConfigMap"}, "text", 3, None], "must be one DynamoGraphDeployment, but the file has 0"),
        (changed("metadata.name", ""), "has no metadata.name"),
        (changed("spec", None), "has no services: a mapping spec.services"),
        (changed("spec.services.Worker", "x"), "has no services"),
        (changed("apiVersion", "v1"), "is of 'v1', not of nvidia.com"),
        (changed("apiVersion", "nvidia.com/v1beta1"), "has no services"),
        ([later(spec={"components": {}})], "the base graph: spec.components"),
        ([later(spec={"components": [{"name": "Worker", "type": "worker"}]})], "has no list of args"),
        (changed("spec.services.Worker", None), "must have one worker, or one for prefill"),
        (changed("spec.services.Worker.subComponentType", "prefill"), "must have one worker"),
        (changed(f"{MAIN}.args", None), "worker Worker has no list of args in its main container"),
        (changed(f"{MAIN}.args", [1]), "an argument of worker Worker is not a string"),
        (changed(f"{MAIN}.args", ["python3 -m dynamo.vllm --model x"]), "Worker are one string"),
        (changed("spec.services.Worker.multinode", {"nodeCount": 2}), "spans several nodes"),
        (changed("spec.services.Worker.resources", "x"), "the resources of a worker are not a mapping"),
    ],
)
def test_a_base_that_is_not_understood_is_refused(base: list[Any], message: str) -> None:
    with pytest.raises(Refusal, match=message) as refusal:
        results_of(a_configuration(), Inputs(base=base))
    assert "\n" not in str(refusal.value)


def test_a_planner_needs_workers_for_both_halves() -> None:
    with pytest.raises(Refusal, match="a planner needs separate workers for prefill and decode"):
        results_of(a_configuration(planner={}), Inputs(base=example("vllm-aggregated")))
    with pytest.raises(Refusal, match="the base graph is made for aggregated"):
        results_of(
            a_configuration(analytic={"mode": "disaggregated"}), Inputs(base=example("vllm-aggregated"))
        )


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("**/request-*.yaml")), ids=lambda it: it.stem)
def test_an_example_of_a_request_is_accepted_and_answered(file: Path) -> None:
    (manifest,) = read_manifests([str(file)])
    assert [] == list(findings_of(manifest, "default", RenderSettings()))
    assert file.stem == manifest.value["metadata"]["name"]
    assert f"{file.name})" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
    if manifest.value["apiVersion"] == "nvidia.com/v1beta1":
        configuration = configuration_of(manifest.value["spec"])
        profile(read_configuration(configuration), Inputs(), lambda _: None)
        return
    request = msgspec.convert(manifest.value, DynamoGraphDeploymentRequest)
    assert request.spec is not None
    config = request.spec.profiling_config.config or {}
    results_of(a_configuration(request.spec.model, request.spec.backend, **config))


COPIES = {"tensor_parallel_size": 8, "enable_attention_dp": True, "moe_expert_parallel_size": 8}
ALONE = {"enable_attention_dp": False, "pipeline_parallel_size": 1, "tensor_parallel_size": 4}
JSON = "--override-engine-args"


@pytest.mark.parametrize(
    ("backend", "layout", "before", "after"),
    [
        ("vllm", Layout(4), "", "--tensor-parallel-size 4"),
        ("sglang", Layout(4), "", "--tp 4"),
        ("trtllm", Layout(4), "", [JSON, json.dumps({"tensor_parallel_size": 4})]),
        # The sizes of a base give way: else the graph would not be the engine that was predicted.
        (
            *("vllm", Layout(4), "-dp 8 --enable-expert-parallel -pp=2"),
            "-dp 1 -pp=1 --tensor-parallel-size 4",
        ),
        (
            *("sglang", Layout(4), "--tp 16 --dp 8 --enable-dp-attention --ep-size 8"),
            "--tp 4 --dp 1 --ep-size 1",
        ),
        (
            *("trtllm", Layout(4), [JSON, '{"enable_attention_dp": true, "pipeline_parallel_size": 2}']),
            [JSON, json.dumps(ALONE)],
        ),
        # Copies of attention, in the words of each backend.
        (
            *("vllm", Layout(1, data=8), ""),
            "--tensor-parallel-size 1 --data-parallel-size 8 --enable-expert-parallel",
        ),
        ("sglang", Layout(1, data=8), "", "--tp 8 --dp-size 8 --ep-size 8 --enable-dp-attention"),
        ("trtllm", Layout(1, data=8), "", [JSON, json.dumps(COPIES)]),
    ],
)
def test_a_layout_in_the_flags_of_each_backend(
    backend: str, layout: Layout, before: str | list[str], after: str | list[str]
) -> None:
    given, wanted = (args.split() if isinstance(args, str) else args for args in (before, after))
    assert sorted(wanted) == sorted(BACKENDS[backend].with_layout(given, layout))


@pytest.mark.parametrize(
    ("path", "is_kept"), [("/models/llama/", True), ("/models/other", False), ("acme/other-8B", False)]
)
def test_a_path_to_the_mounted_weights_stays_and_no_other_model_does(path: str, is_kept: bool) -> None:
    base = changed(f"{MAIN}.args", ["--model", path])
    cache = {"pvcName": "weights", "mountPath": "/models", "pvcPath": "llama"}
    known = a_configuration("acme/llama-8B", deployment={"modelCache": cache})
    assert is_kept == (path in str(results_of(known, Inputs(base=base)).files[RESULTS_FILE]))


@pytest.mark.parametrize("backend", ["vllm", "sglang", "trtllm"])
def test_workers_load_mounted_weights_and_serve_them_by_the_models_name(backend: str) -> None:
    cache = {"pvcName": "weights", "pvcPath": "llama"}
    known = a_configuration("acme/llama-8B", deployment={"modelCache": cache}, engine={"backend": backend})
    config = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
    for model_config, is_mounted in (({**config, "vocab_size": 128256}, True), (None, False)):
        found = results_of(known, Inputs(model_config=model_config))
        for worker in workers_of(graph_of(found)).values():
            said = " ".join(worker["extraPodSpec"]["mainContainer"]["args"])
            assert is_mounted == ("/opt/model-cache/llama" in said)
            assert not is_mounted or "--served-model-name acme/llama-8B" in said


def test_an_engine_of_several_nodes_has_a_stage_of_the_pipeline_on_each() -> None:
    known = a_configuration(
        "meta-llama/Llama-3.1-405B-Instruct",
        hardware={"gpuType": "h100_sxm"},
        analytic={"maxNodesPerEngine": 2},
    )
    (worker,) = workers_of(graph_of(results_of(known))).values()
    said = " ".join(worker["extraPodSpec"]["mainContainer"]["args"])
    assert "--tensor-parallel-size 8 --pipeline-parallel-size 2" in said
    assert ({"nodeCount": 2}, {"gpu": "8"}) == (worker["multinode"], worker["resources"]["limits"])


@pytest.mark.parametrize("engine", ["auto", "kernels"])
def test_formulas_take_over_where_the_kernels_of_no_layout_are_measured(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_table(layout: Layout) -> Engine | None:
        raise Refusal(f"no table for {layout.tensor} GPUs")

    monkeypatch.setattr(sources, "kernel_source", lambda *_: sources.Source("kernels", no_table))
    known = a_configuration(analytic={"engine": engine})
    if engine == "kernels":
        with pytest.raises(Refusal, match="no table for 1 GPUs"):
            results_of(known)
        return
    said, found = steps_and_results(known)
    assert "predicted by formulas, because no table for 1 GPUs, not measured" in said[0].message
    assert "by formulas" in found.choice.text()
