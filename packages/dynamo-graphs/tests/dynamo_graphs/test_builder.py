"""The builders make what the examples say, and refuse at once what the operator would refuse."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynamo_graphs import (
    ApiObject,
    Graph,
    InvalidObject,
    Latency,
    Model,
    Request,
    ScalingAdapter,
    installed_settings,
)
from dynamo_graphs.fields import Toleration
from dynamo_graphs.objects import ServiceOptions
from dynamo_graphs.spelling import snake
from dynamo_graphs.versions import Version
from dynamo_operator.component.api import SharedMemory, VolumeMount
from dynamo_operator.crds import KINDS, whole_schema
from dynamo_operator.documents import documents
from dynamo_operator.names import dynamo_namespace
from dynamo_operator.shared.problems import ProblemKind
from dynamoctl.installation.manifests import render_settings
from kube_runtime.types.meta import Object, Resource

EXAMPLES = Path(__file__).parents[4] / "examples"
SMALL, LARGE, HUGE = "Qwen/Qwen3-0.6B", "Qwen/Qwen3-8B", "deepseek-ai/DeepSeek-R1"
TOKEN = "hf-token-secret"
ADAPTER = ScalingAdapter("a", graph="g", service="s", replicas=1)
SMALL_ONE: Any = {"model": SMALL, "env_from_secret": TOKEN}


def aggregated(backend: Any) -> Graph:
    return Graph(f"{backend}-aggregated").frontend(backend=backend).worker(backend=backend, **SMALL_ONE)


def disaggregated(backend: Any) -> Graph:
    graph = Graph(f"{backend}-disaggregated").frontend(backend=backend)
    return graph.prefill(backend=backend, **SMALL_ONE).decode(backend=backend, **SMALL_ONE)


def multinode(backend: Any, **worker: Any) -> Graph:
    """With changes of the worker: these examples have no flags that only other examples need."""
    graph = Graph(f"{backend}-multinode").frontend(backend=backend)
    options: Any = {"gpus": 8, "nodes": 2, "shared_memory": {"size": "80Gi"}}
    graph = graph.worker(model=HUGE, backend=backend, env_from_secret=TOKEN, **options)
    return graph.service("Worker", **worker)


BUILT: Mapping[str, Callable[[], ApiObject]] = {
    "vllm-aggregated": lambda: aggregated("vllm"),
    "sglang-aggregated": lambda: aggregated("sglang"),
    "trtllm-aggregated": lambda: aggregated("trtllm"),
    "sglang-disaggregated": lambda: disaggregated("sglang"),
    "trtllm-disaggregated": lambda: disaggregated("trtllm"),
    "vllm-disaggregated": lambda: (
        Graph("vllm-disaggregated")
        .frontend(routing="kv")
        .prefill(**SMALL_ONE)
        .decode(**SMALL_ONE, replicas=2)
    ),
    "vllm-planner": lambda: (
        Graph("vllm-planner").frontend().planner().prefill(**SMALL_ONE).decode(**SMALL_ONE)
    ),
    "tasks/kv-routing": lambda: Graph("kv-routing").frontend(routing="kv").worker(replicas=3, **SMALL_ONE),
    "tasks/two-models": lambda: (
        Graph("two-models")
        .frontend()
        .worker("Small", **SMALL_ONE)
        .worker("Large", model=LARGE, env_from_secret=TOKEN)
    ),
    "tasks/vllm-multinode": lambda: multinode("vllm"),
    "tasks/sglang-multinode": lambda: multinode("sglang", args=("--model-path", HUGE, "--tp", "16")),
    "tasks/trtllm-multinode": lambda: multinode(
        "trtllm",
        args=("--model-path", HUGE, "--tensor-parallel-size", "16"),
        extra_pod_spec={"mainContainer": {"workingDir": "/workspace/examples/backends/trtllm"}},
    ),
    "tasks/lora": lambda: Graph("lora").frontend().worker(lora=True, replicas=2, **SMALL_ONE),
    "v1alpha1/model-cache": lambda: (
        Graph("model-cache")
        .pvc("models", size="200Gi", storage_class="shared", retain=True)
        .pvc("kernels", size="20Gi", storage_class="shared", retain=True)
        .frontend()
        .worker(
            **SMALL_ONE, replicas=2, env={"HF_HOME": "/models"}, mounts={"models": "/models"}, cache="kernels"
        )
    ),
    "v1alpha1/request-analytic": lambda: Request.for_latency(
        "request-analytic",
        model="Qwen/Qwen3-32B",
        profiler_image="dynamo-operator:0.1.0",
        latency=Latency(first_token_ms=500, next_token_ms=50, input_tokens=2048, output_tokens=256),
        config={
            "hardware": {"gpuType": "h200_sxm", "maxNumGpusPerEngine": 4},
            "analytic": {"requestsPerSecond": 8, "mode": "disaggregated"},
        },
        auto_apply=True,
        use_mocker=True,
    ),
}


def example(name: str) -> list[Object]:
    path = EXAMPLES / f"{name}.yaml"
    return [each.value for each in documents(path.name, path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("name", BUILT)
def test_an_example_is_what_the_builders_make(name: str) -> None:
    version: Version = "v1alpha1" if name.startswith("v1alpha1/") else "v1beta1"
    assert example(name)[0] == BUILT[name]().to_dict(version)


def test_the_model_of_an_example_is_what_the_builders_make() -> None:
    built = Model.lora(
        "lora-support-answers",
        model="support-answers",
        base=SMALL,
        uri="s3://my-bucket/loras/support-answers",
    )
    assert example("tasks/lora")[1] == built.to_dict()
    assert () == built.problems()


@pytest.mark.parametrize("backend", ["vllm", "sglang", "trtllm"])
def test_parallelism_follows_from_gpus_and_nodes(backend: str) -> None:
    flags = {
        "vllm": ["--tensor-parallel-size 4 --pipeline-parallel-size 2", "--tensor-parallel-size 4"],
        "sglang": ["--tp 8", "--tp 4"],
        "trtllm": ["--tensor-parallel-size 8", '--override-engine-args {"tensor_parallel_size": 4}'],
    }[backend]
    graph = Graph("g").worker("W", model="m", backend=backend, gpus=4, nodes=2)  # type: ignore[arg-type]
    graph = graph.prefill("P", model="m", backend=backend, gpus=4)  # type: ignore[arg-type]
    for name, wanted in zip(("W", "P"), flags, strict=True):
        pod = graph.spec.services[name].extra_pod_spec or {}
        assert wanted in " ".join(pod["mainContainer"]["args"])


def mistakes(make: Callable[[], object]) -> list[str]:
    with pytest.raises(InvalidObject) as caught:
        make()
    assert str(caught.value) == "\n".join(map(str, caught.value.problems))
    return [each.path for each in caught.value.problems]


GRAPH = Graph("chat").frontend().worker("decode", model=SMALL)


@pytest.mark.parametrize(
    ("paths", "make"),
    [
        (["metadata.name"], lambda: Graph("Chat!")),
        (["spec.replicas"], lambda: Graph("chat", replicas=-1)),
        (["spec.replica"], lambda: Graph("chat", replica=1)),  # type: ignore[call-arg]
        (["spec.services.decode.replicas"], lambda: GRAPH.service("decode", replicas="two")),  # type: ignore[arg-type]
        (
            ["spec.services.W.gpus", "spec.services.W.env", "spec.services.W.replicas"],
            lambda: GRAPH.worker("W", model="m", gpus="two", env=3, replicas="two"),  # type: ignore[arg-type]
        ),
        (["spec.services.W.args"], lambda: GRAPH.worker("W", model="m", args="--x")),
        (["spec.services.decode.command"], lambda: GRAPH.service("decode", command=b"x")),  # type: ignore[arg-type]
        (["spec.services.W.image"], lambda: GRAPH.service("W", image=1)),  # type: ignore[arg-type]
        (
            ["spec.services.W.multinode.nodeCount"],
            lambda: GRAPH.worker("W", model="m", nodes="a"),  # type: ignore[arg-type]
        ),
        (["spec.services.W"], lambda: GRAPH.worker("W", model="")),
        (["spec.services.W"], lambda: GRAPH.worker("W", model="--trust-remote-code")),
        (["spec.services.W"], lambda: GRAPH.worker("W", model="m", backend="vlm")),  # type: ignore[arg-type]
        (["spec.services.W"], lambda: GRAPH.worker("W", model="m", role="both")),  # type: ignore[arg-type]
        (["spec.services.F"], lambda: GRAPH.frontend("F", routing="best")),  # type: ignore[arg-type]
        (["spec.services.decode"], lambda: GRAPH.worker("decode", model="m")),
        (["spec.services.decode"], lambda: GRAPH.worker("Decode", model="m")),
        (["spec.services"], lambda: GRAPH.without("Decode")),
        (["spec.services"], lambda: GRAPH.service("nope", replicas=3)),
        (["spec.services.W.gpus"], lambda: GRAPH.worker("W", model="m", gpus=0)),
        (["spec.services.decode.gpus"], lambda: GRAPH.service("decode", gpus=0)),
        (
            ["spec.services.W.gpus", "spec.services.W.replicas"],
            lambda: GRAPH.worker("W", model="m", gpus=16, replicas=-1),
        ),
        (
            ["spec.services.W.args"],
            lambda: GRAPH.worker("W", model="m", gpus=8, args=["--tensor-parallel-size=16"]),
        ),
        (["spec.services.decode.envs"], lambda: GRAPH.service("decode", env={"A": object()})),  # type: ignore[dict-item]
        (["spec.services.decode.probe"], lambda: GRAPH.service("decode", probe={})),  # type: ignore[call-arg]
        (
            ["spec.services.decode.livenessProbe"],
            lambda: GRAPH.service("decode", liveness_probe={"exec": object()}),
        ),
        (["apiVersion"], lambda: Graph.from_yaml("a: b")),
        (["kind"], lambda: Graph.from_dict(ADAPTER.to_dict())),
        (["text:2:1"], lambda: Graph.from_yaml("a: [")),
        (["document"], lambda: Graph.from_yaml(GRAPH.to_yaml() + "---\n" + GRAPH.to_yaml())),
        (["document"], lambda: Graph.from_yaml("")),
    ],
)
def test_a_mistake_is_an_error_at_once_with_all_paths(paths: list[str], make: Callable[[], object]) -> None:
    assert paths == mistakes(make)


def test_a_size_that_is_larger_than_a_node_is_told_the_way_to_several() -> None:
    with pytest.raises(InvalidObject, match=r"gpus=8, nodes=2; node_gpus=16") as caught:
        GRAPH.worker("W", model="m", gpus=16)
    assert "multinode" in str(caught.value)
    for options in ({"gpus": 8, "nodes": 2}, {"gpus": 16, "node_gpus": 16}):
        sized: Any = options
        graph = GRAPH.worker("W", model="m", args=["--tensor-parallel-size", "16"], **sized)
        assert () == graph.problems()


def test_a_service_that_the_graph_does_not_have_is_named_with_those_that_it_has() -> None:
    with pytest.raises(InvalidObject, match=r'service "nope" not found \(services: Frontend, decode\)'):
        GRAPH.service("nope", replicas=3)
    with pytest.raises(InvalidObject, match=r'did you mean "decode"'):
        GRAPH.service("Decode", replicas=3)


CAMEL: Any = {
    "envs": [{"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}],
    "volumeMounts": [{"name": "models", "mountPoint": "/models"}],
    "livenessProbe": {"httpGet": {"path": "/x", "port": 8000}, "periodSeconds": 5},
    "resources": {"limits": {"gpu": "2", "custom": {"rdma/ib": "1"}}},
    "extraPodSpec": {
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "nodeSelector": {"my_label": "a", "nodeType": "b"},
        "imagePullSecrets": [{"name": "registry"}],
        "securityContext": {"runAsUser": 1000, "fsGroup": 1000},
    },
}


def test_nested_fields_are_in_snake_case_or_as_in_the_api_and_keys_of_labels_stay() -> None:
    given: ServiceOptions = {
        "env": {"HF_TOKEN": {"secret_key_ref": {"name": "hf", "key": "token"}}},
        "mounts": {"models": "/models"},
        "liveness_probe": {"http_get": {"path": "/x", "port": 8000}, "period_seconds": 5},
        "gpus": 2,
        "resources": {"limits": {"custom": {"rdma/ib": "1"}}},
        "tolerations": [Toleration(key="gpu", operator="Exists")],
        "node_selector": {"my_label": "a", "nodeType": "b"},
        "image_pull_secrets": ["registry"],
        "extra_pod_spec": {"security_context": {"run_as_user": 1000, "fs_group": 1000}},
    }
    bare = Graph("g").frontend().service("Frontend", replicas=2)
    snake = bare.service("Frontend", **given)
    as_in_api = bare.service("Frontend", **CAMEL)
    assert as_in_api == snake
    service = snake.to_dict("v1alpha1")["spec"]["services"]["Frontend"]
    assert {"my_label": "a", "nodeType": "b"} == service["extraPodSpec"]["nodeSelector"]


def test_structs_of_the_operator_are_accepted_too() -> None:
    options: Any = {
        "volume_mounts": (VolumeMount("models", "/models"),),
        "shared_memory": SharedMemory(size="8Gi"),
    }
    graph = GRAPH.pvc("models").service("decode", **options)
    assert "/models" == graph.spec.services["decode"].volume_mounts[0].mount_point


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"name": "a", "storage_clas": "x"}, 'storage_clas: unknown field; did you mean "storage_class"?'),
        ({"name": "a", "storageClas": "x"}, 'storageClas: unknown field; did you mean "storageClass"?'),
        ({"name": "a", "size": "1", "siz": "2"}, 'siz: unknown field; did you mean "size"?'),
    ],
)
def test_an_unknown_nested_field_is_named_in_its_own_case(claim: Any, message: str) -> None:
    with pytest.raises(InvalidObject) as caught:
        Graph("g", pvcs=[claim])
    assert f"spec.pvcs[0].{message}" in str(caught.value)


def test_both_spellings_of_one_field_are_a_mistake() -> None:
    both: Any = {"name": "a", "storage_class": "x", "storageClass": "y"}
    with pytest.raises(InvalidObject, match=r'duplicate of "storageClass"'):
        Graph("g", pvcs=[both])


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_two_fields_of_one_object_have_one_name_in_snake_case(kind: type[Resource]) -> None:
    def differ(schema: Object) -> bool:
        fields = schema.get("properties", {})
        inner = [*fields.values(), schema.get("items"), schema.get("additionalProperties")]
        return len(fields) == len({*map(snake, fields)}) and all(
            differ(part) for part in inner if isinstance(part, dict)
        )

    assert differ(whole_schema(kind))


def test_a_graph_never_changes() -> None:
    before = GRAPH.to_dict()
    GRAPH.service("decode", replicas=5, env={"A": "1"}, image="i").with_spec(replicas=2)
    GRAPH.with_metadata(labels={"a": "b"}, namespace="ml").without("decode")
    copy = GRAPH.to_dict()
    copy["spec"]["components"].clear()
    assert before == GRAPH.to_dict()


def test_none_takes_a_field_away_and_options_are_merged() -> None:
    graph = GRAPH.service("decode", env={"A": "1", "B": "2"}, shared_memory={"size": "8Gi"})
    graph = graph.service("decode", env={"A": "3"}, shared_memory=None, nodes=2, gpus=4)
    service = graph.service("decode", nodes=1, extra_pod_spec={"nodeSelector": {"x": "y"}})
    decode = service.spec.services["decode"]
    assert [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}] == list(decode.envs)
    assert decode.shared_memory is None
    assert decode.multinode is None
    assert {"mainContainer", "nodeSelector"} == set(decode.extra_pod_spec or {})


def test_a_broken_graph_may_be_repaired_step_by_step() -> None:
    document = GRAPH.to_dict("v1alpha1")
    document["spec"]["services"]["decode"].update(replicas="two", unknown=1)
    broken = Graph.from_dict(document)
    assert ["spec.services.decode.replicas", "spec.services.decode.unknown"] == [
        each.path for each in broken.problems()
    ]
    with pytest.raises(InvalidObject):
        broken.render()
    better = broken.service("decode", replicas=2)
    assert [ProblemKind.UNKNOWN_FIELD] == [each.kind for each in better.problems()]


@pytest.mark.parametrize("part", ["spec", "metadata"])
@pytest.mark.parametrize("value", [1, "text", [1], {"services": 1}, {"services": {"a": 1}}])
def test_a_document_of_any_shape_is_an_error_not_a_crash(part: str, value: object) -> None:
    broken = Graph.from_dict({**GRAPH.to_dict("v1alpha1"), part: value})
    assert broken.problems()
    with pytest.raises(InvalidObject):
        _ = broken.service("a", replicas=-1).name
    repr(broken)


def test_what_a_graph_renders_is_what_an_operator_of_the_charts_applies() -> None:
    assert render_settings(None) == installed_settings()
    kinds = [each["kind"] for each in GRAPH.render()]
    assert 2 == kinds.count("Deployment") == kinds.count("DynamoComponentDeployment")
    (frontend, _) = (each for each in GRAPH.render() if each["kind"] == "Deployment")
    assert "default" == frontend["metadata"]["namespace"]
    assert () == ADAPTER.render()


def test_the_pods_of_a_graph_with_a_long_name_find_each_other_as_in_a_cluster() -> None:
    name = "chat-" + "x" * 70
    (pod,) = (
        document["spec"]["template"]["spec"]
        for document in Graph(name, namespace="prod").frontend().render()
        if document["kind"] == "Deployment"
    )
    assert f"{name}-k8s-service-discovery" == pod["serviceAccountName"]
    variables = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert name == variables["DYN_PARENT_DGD_K8S_NAME"]
    assert dynamo_namespace("prod", name) == variables["DYN_NAMESPACE"]


NAMES = st.from_regex(r"[A-Za-z][a-z0-9]{0,8}", fullmatch=True)
BACKENDS = st.sampled_from(["vllm", "sglang", "trtllm"])
MODELS = st.sampled_from(["Qwen/Qwen3-0.6B", "/models/mine", "org/name with space", "模型"])
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
VARIABLES = st.dictionaries(st.from_regex(r"[A-Z]{3,8}_X", fullmatch=True), TEXT, max_size=3)
WORDS = st.sampled_from(["--max-model-len=8192", "--seed", "$(HOME)", "a b", '"'])
IMAGES = st.sampled_from(["registry.example.com/runtime:1", "runtime@sha256:" + "0" * 64])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.integers(0, 50),
        "gpus": st.integers(1, 8),
        "nodes": st.integers(1, 4),
        "env_from_secret": NAMES.map(str.lower),
        "env": VARIABLES,
        "args": st.lists(WORDS, max_size=3),
        "image": IMAGES,
    },
)
METHODS = st.sampled_from(["worker", "prefill", "decode"])
STEPS = st.lists(st.tuples(METHODS, BACKENDS, MODELS, OPTIONS, st.booleans()), max_size=4)


@st.composite
def graphs(draw: Callable[[st.SearchStrategy[object]], object]) -> Graph:
    routing = draw(st.sampled_from([None, "kv", "round-robin", "random"]))
    graph = Graph("g", namespace="ml").frontend(routing=routing)  # type: ignore[arg-type]
    steps = draw(STEPS)
    assert isinstance(steps, list)
    for number, (method, backend, model, options, has_lora) in enumerate(steps):
        add = getattr(graph, method)
        graph = add(f"Worker{number}", model=model, backend=backend, lora=has_lora, **options)
    if draw(st.booleans()):
        graph = graph.planner(interval_seconds=30)
    return graph


@settings(max_examples=60)
@given(graphs())
def test_a_graph_of_the_builders_has_no_problems_renders_and_survives_the_way_through_text(
    graph: Graph,
) -> None:
    assert () == graph.problems()
    kinds = [each["kind"] for each in graph.render()]
    assert kinds.count("DynamoComponentDeployment") == len(graph.spec.services)
    assert graph.svg().startswith("<svg ")
    again = Graph.from_yaml(graph.to_yaml())
    assert graph == again
    assert graph.to_yaml() == again.to_yaml()
    assert graph != again.with_spec(replicas=7)
