"""A request in v1beta1 on a cluster that stores that version, while no conversion webhook answers."""

import json
from collections.abc import Callable, Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.guides import written
from cluster.operator_process import OperatorProcess
from cluster.profiler.kubelet import BY_HAND, Kubelet
from cluster.served import serving
from cluster.world import World
from kube_runtime.types.meta import Kind, Object

pytestmark = pytest.mark.cluster

REQUEST = Kind("nvidia.com", "v1beta1", "DynamoGraphDeploymentRequest")
GRAPH = Kind("nvidia.com", "v1beta1", "DynamoGraphDeployment")
RUN_BY_HAND = {"template": {"spec": {"containers": [{"name": "profiler", "resources": BY_HAND}]}}}
BESIDE: Object = {"features": {"mocker": {"enabled": True}}, "overrides": {"profilingJob": RUN_BY_HAND}}
"""Of the page's request here: no node has its GPUs, and the test runs its pod."""


@pytest.fixture(scope="module")
def operated(operated: ControlPlane) -> Iterator[ControlPlane]:
    with serving(operated, "v1beta1", "v1alpha1"):
        yield operated


@pytest.mark.usefixtures("operator")
def test_the_name_of_a_model_becomes_a_graph(
    operator: OperatorProcess, world: World, kubelet: Kubelet, kubectl: Callable[..., str]
) -> None:
    manifest, *_ = written("requests.md")
    manifest["spec"] |= BESIDE
    kubectl("apply", "--filename=-", input=json.dumps(manifest))
    assert {"profiler": 0, "output-copier": 0} == kubelet.runs("profile-chat"), kubelet.log("profiler")
    world.until(
        lambda: world.read(REQUEST, "chat").get("status", {}).get("phase") == "Deployed",
        what=lambda: kubectl("get", "dgdr,dgd", "--output=yaml"),
    )
    kubectl("wait", "--for=condition=Succeeded", "--timeout=1s", "dgdr/chat")
    request = world.read(REQUEST, "chat")
    hardware = request["spec"]["hardware"]
    assert ("h100_sxm", 81559, True) == (hardware["gpuSku"], hardware["vramMb"], hardware["totalGpus"] > 0)
    owners = {
        entry["manager"]
        for entry in request["metadata"]["managedFields"]
        if "f:hardware" in entry["fieldsV1"].get("f:spec", {})
    }
    assert {"dynamo-operator-dgdr"} == owners
    reasons = {it["type"]: it["reason"] for it in request["status"]["conditions"]}
    assert ("Deployed", "ProfilingCompleted") == (reasons["Succeeded"], reasons["Profiling"])
    assert request["status"]["deploymentInfo"]["availableReplicas"] > 1
    assert "nvidia.com/v1beta1" == request["status"]["profilingResults"]["selectedConfig"]["apiVersion"]
    (shown,) = kubectl("get", "dgdr/chat", "--no-headers").splitlines()
    assert ["chat", "Qwen/Qwen3-0.6B", "auto", "Deployed"] == shown.split()[:4]
    assert "successful" == world.read(GRAPH, "chat")["status"]["state"]
    kubectl("delete", "dgd/chat")
    world.until(
        lambda: world.read(REQUEST, "chat")["status"]["phase"] == "Failed",
        what=lambda: kubectl("get", "dgdr", "--output=yaml"),
    )
    kubectl("delete", "dgdr/chat")
    world.gone(REQUEST, "chat")
    assert "conversion webhook" not in operator.log.read_text(encoding="utf-8")
