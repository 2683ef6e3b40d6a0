"""The command reads what a Job is given, and leaves whole files or a cause behind."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dynamo_operator.requests import results as request_output
from dynamo_operator.requests.api import RESULTS_FILE, STATUS_FILE, DeploymentOverrides
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.render import profiler_config_text
from dynamo_profiler import Refusal
from dynamo_profiler import command as profiler
from dynamo_profiler.shape import NodeGpus
from former_fields import former_fields_in
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.types.meta import Metadata
from profiler_questions import status, text
from simulated.requests import a_spec

ROOT = Path(__file__).parents[4]
TEXTS = ["no", "y", "1e3", "1_0", "0o7", "0x1f", "2020-01-01", "1:30", "~", "a: b #c", "é 'x'"]


@pytest.mark.parametrize("image", TEXTS)
def test_a_text_stays_a_text_from_the_request_to_the_graph(tmp_path: Path, image: str) -> None:
    config = {"sla": {"ttft": 2000, "itl": 100}, "deployment": {"namespace": image}}
    overrides = DeploymentOverrides(workers_image=image)
    spec = a_spec(model="a/8B", config=config, deployment_overrides=overrides)
    given = profiler_config_text(spec, "team-a")
    profiler.run(given.replace("output_dir: /data", f"output_dir: {tmp_path}"))
    data = {entry.name: entry.read_text(encoding="utf-8") for entry in tmp_path.iterdir()}
    for spec in (a_spec(), a_spec(use_mocker=True)):
        found = request_output.read_output(Request(Metadata("chat", "n")), spec, data)
        for service in found.graph["spec"]["services"].values():
            assert image == service["extraPodSpec"]["mainContainer"]["image"]
    assert request_output.progress(data).phase == "Done"


def test_a_failed_run_leaves_nothing_of_an_earlier_one_and_the_cause_where_the_kubelet_looks(
    tmp_path: Path,
) -> None:
    termination_log, folder = tmp_path / "termination-log", tmp_path / "data"
    folder.mkdir()
    profiler.run(text(folder))
    for is_there in (False, True):
        if is_there:
            termination_log.touch()
        with pytest.raises(Refusal) as refusal:
            profiler.run(text(folder, sla={"ttft": 0.1}), termination_log=termination_log)
        assert is_there == termination_log.exists()
        assert {STATUS_FILE} == {entry.name for entry in folder.iterdir()}
    assert str(refusal.value) == termination_log.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"hardware": {"gpuSku": "mi300"}}, "spec.hardware.gpuSku"),
        ({"sla": {"e2eLatency": "fast"}}, "spec.sla.ttft"),
        ({"workload": {"isl": "long"}}, "spec.workload.isl"),
        ({"workload": {"concurrency": "all"}}, "spec.workload.requestRate"),
        ({"hardware": {"totalGpus": -1}}, "spec.hardware.totalGpus"),
        ({"model": "acme/secret"}, "provide its config.json with spec.modelCache"),
    ],
)
def test_the_cause_in_a_request_of_v1beta1_names_its_fields(tmp_path: Path, spec: Any, field: str) -> None:
    given = json.dumps({"model": "acme/tiny-8B", **spec})
    with pytest.raises(OperatorError):
        profiler.run(given, request_folder=str(tmp_path))
    message = status(tmp_path)["message"]
    assert field in message
    assert not former_fields_in(message)


def test_all_yaml_errors_of_a_base_graph_are_reported(tmp_path: Path) -> None:
    base = tmp_path / "disagg.yaml"
    base.write_text("kind: A\nkind: B\nspec: 1\nspec: 2\n", encoding="utf-8")
    with pytest.raises(Refusal) as refusal:
        profiler.run(text(tmp_path, engine={"backend": "vllm", "config": str(base)}))
    first, second = str(refusal.value).split("; ")
    assert first.startswith(f"{base}:2:1: ")
    assert second.startswith(f"{base}:4:1: ")
    assert str(refusal.value) == status(tmp_path)["message"]


def test_a_bug_in_the_reader_is_not_reported_as_an_error_of_the_base_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(source: str, _text: str) -> list[Any]:
        raise ExceptionGroup(source, [ConfigError(source, "one"), KeyError("two")])

    base = tmp_path / "disagg.yaml"
    base.write_text("kind: A\n", encoding="utf-8")
    monkeypatch.setattr(profiler, "documents", broken)
    with pytest.raises(ExceptionGroup) as raised:
        profiler.run(text(tmp_path, engine={"backend": "vllm", "config": str(base)}))
    assert raised.value.subgroup(KeyError) is not None


@pytest.mark.parametrize(
    ("nodes", "cause"),
    [
        ([], "no node has GPUs and the label nvidia.com/gpu.product: install NVIDIA's GPU feature "),
        ([NodeGpus({}, {"cpu": "4"})], "no node has GPUs and the label nvidia.com/gpu.product: "),
        (
            [NodeGpus({"nvidia.com/gpu.product": "Abacus", "nvidia.com/gpu.count": "8"}, {})],
            'unknown GPU "Abacus" (expected one of ',
        ),
    ],
    ids=["no nodes", "no GPUs", "unknown GPUs"],
)
def test_nodes_without_a_known_gpu_are_the_cause_that_the_request_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: list[NodeGpus], cause: str
) -> None:
    async def found() -> list[NodeGpus]:
        return nodes

    monkeypatch.setattr(profiler, "_nodes", found)
    with pytest.raises(Refusal):
        profiler.run(text(tmp_path), discovers=True)
    assert cause in status(tmp_path)["message"]
    assert {STATUS_FILE} == {entry.name for entry in tmp_path.iterdir()}


def test_the_model_cache_says_how_large_the_model_is(tmp_path: Path) -> None:
    cache = {"pvcName": "models", "mountPath": str(tmp_path), "pvcPath": "secret"}
    deployment = {"model": "acme/secret", "modelCache": cache}
    (tmp_path / "secret").mkdir()
    unknown = r'unknown size of model "acme/secret".* analytic\.parametersBillions'
    with pytest.raises(Refusal, match=unknown):
        profiler.run(text(tmp_path, deployment=deployment))
    config = {"num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32}
    (tmp_path / "secret/config.json").write_text(json.dumps(config), encoding="utf-8")
    choice = profiler.run(text(tmp_path, deployment=deployment)).choice
    assert 5e9 < choice.roles[0].engine.shape.parameters < 9e9


@pytest.mark.parametrize("content", ["{", "[]", "\ud800"])
def test_a_config_of_a_model_that_is_broken_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(content.encode("utf-8", "surrogatepass"))
    cache = {"pvcName": "models", "mountPath": str(tmp_path)}
    with pytest.raises(ConfigError, match=r"config\.json: not "):
        profiler.run(text(tmp_path, deployment={"model": "a/8B", "modelCache": cache}))


def test_the_base_graph_is_read_from_its_file_and_another_is_named_like_the_request(tmp_path: Path) -> None:
    base = ROOT / "examples/sglang-disaggregated.yaml"
    engine = {"backend": "sglang", "config": str(base)}
    for config, name in ((engine, "sglang-disaggregated"), ({"backend": "sglang"}, "chat")):
        profiler.run(text(tmp_path, engine=config), environ={"DGDR_NAME": "chat"})
        graph = yaml.safe_load((tmp_path / RESULTS_FILE).read_text(encoding="utf-8"))
        assert name == graph["metadata"]["name"]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "a: [",
        "a: 1\n---\nb: 2",
        "a: !!bool maybe",
        "a: !!timestamp never",
        f"a: {'9' * 5000}",
        "a: !!python/object:os.system {}",
        "- 1",
        '{"engine": {"backend": "vllm"}}',
        text(Path("/nowhere/at/all")),
        text(Path("/proc/self/cmdline")),
        text(Path("/nowhere"), engine={"backend": "vllm", "config": "/nowhere.yaml"}),
    ],
)
def test_what_cannot_be_used_is_one_line(given: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        profiler.run(given)
    assert str(refusal.value)
    assert "\n" not in str(refusal.value).strip()
