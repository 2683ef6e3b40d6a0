"""The requests that Dynamo ships end in ready graphs, by measured kernels.

Source: `benchmarks/profiler/deploy/profile_sla_*_dgdr.yaml` of Dynamo 0.7 to 0.9, and the request in the
summary of its operator. The kernels are recorded ones. Two of the requests ask for a measurement, which needs
the engines themselves: here they compute, as they do with `useAiConfigurator: true`.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.conftest import ControlPlane
from cluster.profiler.kubelet import BY_HAND, Kubelet
from cluster.requests.playing import REQUEST, state
from cluster.world import CONFIG_MAP, GRAPH, World
from kube_runtime.types.meta import Kind, Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

ROOT = Path(__file__).parents[3]
CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
COMPUTED = {"useAiConfigurator": True}
SLA = {"isl": 3000, "osl": 150, "ttft": 200.0, "itl": 20.0}
BASE = "deepseek-r1-config", "tep16p-dep16d-disagg.yaml"
SIZES = {"gpuType": "h200_sxm", "minNumGpusPerEngine": 8, "maxNumGpusPerEngine": 16, "numGpusPerNode": 8}


def a_request(name: str, model: str, backend: str, config: Object | None, **profiling: Any) -> Object:
    """A request with an image as in its file, whose pod the test's kubelet runs."""
    image = f"nvcr.io/nvidia/ai-dynamo/{backend}-runtime:0.9.0"
    how = {"profilerImage": image, "resources": BY_HAND, **profiling}
    spec: Object = {"model": model, "backend": backend, "autoApply": True, "profilingConfig": how}
    if config is not None:
        how["config"] = config
        spec["deploymentOverrides"] = {"workersImage": image}
    return {"metadata": {"name": name}, "spec": spec}


def a_large_request() -> Object:
    config = {
        "deployment": {"modelCache": {"pvcName": "model-cache", "pvcPath": "deepseek-r1"}},
        "sweep": COMPUTED,
        "hardware": SIZES,
        "sla": SLA,
    }
    base = dict(zip(("name", "key"), BASE, strict=True))
    return a_request("sla-moe", "deepseek-ai/DeepSeek-R1", "sglang", config, configMapRef=base)


COMPUTING = a_request(
    "sla-aic",
    "Qwen/Qwen3-32B",
    "trtllm",
    {
        "sweep": {
            "use_ai_configurator": True,
            "aic_system": "h200_sxm",
            "aic_hf_id": "Qwen/Qwen3-32B",
            "aic_backend_version": "0.20.0",
        },
        "sla": {"isl": 3000, "osl": 150, "ttft": 500.0, "itl": 30.0},
    },
)
MEASURING = a_request("sla-online", "Qwen/Qwen3-0.6B", "vllm", {"sweep": COMPUTED, "sla": SLA})
SHORTEST = a_request("auto-config-llm", "Qwen/Qwen3-0.6B", "vllm", None)
VOLUMES = Kind("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)


@pytest.fixture
def kubelet(kinds: ControlPlane, world: World, tmp_path: Path) -> Kubelet:
    """A kubelet whose image of the profiler has the kernels."""
    database = ROOT / "tests" / "simulated" / "database"
    return Kubelet(kinds, world, tmp_path, {"PYTHONPATH": str(database)})


@pytest.fixture
def _around_the_large_one(world: World) -> None:
    """The PVC with the weights, which workers mount, and the base graph, that the request names."""
    modes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    storage = {"resources": {"requests": {"storage": "1Ti"}}, **modes}
    claim = {"name": "model-cache", "namespace": world.namespace}
    volume = {"capacity": {"storage": "1Ti"}, "hostPath": {"path": "/weights"}, **modes}
    metadata = {"name": f"weights-{world.namespace}", "namespace": ""}
    world.create(VOLUMES, {"metadata": metadata, "spec": {**volume, "claimRef": claim}})
    world.create(CLAIM, {"metadata": {"name": "model-cache"}, "spec": storage})
    text = (ROOT / "examples" / "sglang-disaggregated.yaml").read_text(encoding="utf-8")
    name, key = BASE
    world.create(CONFIG_MAP, {"metadata": {"name": name}, "data": {key: text}})


@pytest.mark.usefixtures("_around_the_large_one")
@pytest.mark.parametrize(
    "request_",
    [COMPUTING, MEASURING, SHORTEST, a_large_request()],
    ids=["computing", "measuring", "shortest", "experts"],
)
def test_a_request_of_dynamo_ends_in_a_ready_graph(request_: Object, world: World, kubelet: Kubelet) -> None:
    name = request_["metadata"]["name"]
    world.create(REQUEST, request_)
    assert 0 == kubelet.runs(f"profile-{name}")["profiler"], kubelet.log("profiler")
    body = world.eventually(REQUEST, name, lambda each: state(each) == "Ready")
    assert "successful" == body["status"]["deployment"]["state"]
    assert "by kernels: ttft" in kubelet.log("profiler")
    graph = world.eventually(GRAPH, body["status"]["deployment"]["name"])
    workers = [each for each in graph["spec"]["services"].values() if each["componentType"] == "worker"]
    assert workers
    model = request_["spec"]["model"]
    for each in workers:
        assert int(each["resources"]["limits"]["gpu"]) >= 1
        assert model in yaml.safe_dump(each["extraPodSpec"]["mainContainer"])
