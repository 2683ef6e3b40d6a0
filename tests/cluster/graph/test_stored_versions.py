"""Graphs on a cluster that stores v1beta1, while no conversion webhook answers.

The CRDs name a Service without pods, as while all replicas of an operator are gone: a request in v1alpha1
fails. The operator needs none.
"""

from collections.abc import Callable, Iterator

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.operator_process import OperatorProcess
from cluster.served import serving
from cluster.world import World
from devcluster.components import KubectlError
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Kind

pytestmark = pytest.mark.cluster

GRAPH = Kind("nvidia.com", "v1beta1", "DynamoGraphDeployment")
ADAPTER = Kind("nvidia.com", "v1beta1", "DynamoGraphDeploymentScalingAdapter")
WORKER = """\
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  components:
    - {name: Frontend, type: frontend, podTemplate: {spec: {containers: [{name: main, image: "vllm:1.6.1"}]}}}
    - name: Decode
      type: decode
      replicas: 2
      scalingAdapter: {}
      podTemplate:
        spec:
          volumes: [{name: tmp, emptyDir: {}}]
          containers:
            - name: main
              image: vllm:1.6.1
              command: [python3, -m, dynamo.vllm]
              volumeMounts: [{name: tmp, mountPath: /tmp, readOnly: true}]
"""


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> Iterator[ControlPlane]:
    with serving(kinds, "v1beta1", "v1alpha1"):
        yield kinds


@pytest.mark.usefixtures("operator")
def test_a_graph_runs_scales_and_goes_without_a_conversion_webhook(
    operator: OperatorProcess, world: World, kubectl: Callable[..., str]
) -> None:
    kubectl("apply", "--filename=-", input=WORKER)
    with pytest.raises(KubectlError, match="conversion webhook"):
        kubectl("get", "dynamographdeployments.v1alpha1.nvidia.com", "chat")
    world.until(lambda: is_ready(world.read(GRAPH, "chat")), what=lambda: str(world.get(GRAPH, "chat")))
    deployment = world.read(Deployment.KIND, "chat-decode")
    (mount,) = (
        mount
        for mount in deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        if mount["name"] == "tmp"
    )
    assert mount["readOnly"]
    kubectl("scale", "dgdsa/chat-decode", "--replicas=3")
    world.until(
        lambda: world.read(GRAPH, "chat")["spec"]["components"][1]["replicas"] == 3,
        what=lambda: kubectl("get", "dgd,dgdsa", "-oyaml"),
    )
    world.until(
        lambda: world.read(Deployment.KIND, "chat-decode")["status"].get("readyReplicas") == 3,
        what=lambda: kubectl("get", "pods"),
    )
    status = world.read(GRAPH, "chat")["status"]
    assert {"Frontend", "Decode"} == set(status["components"])
    kubectl("delete", "dgd/chat")
    world.gone(GRAPH, "chat")
    world.gone(ADAPTER, "chat-decode")
    world.gone(Deployment.KIND, "chat-decode")
    assert "conversion webhook" not in operator.log.read_text(encoding="utf-8")
