"""The platform as a release on the control plane, and the operator beside it as its Deployment says."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.charts.conftest import PLATFORM
from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import PODS, World
from devcluster.programs import Helm
from kube_runtime.types.kinds import Deployment, ValidatingWebhookConfiguration
from kube_runtime.types.meta import Object

CONFIGURATION = ValidatingWebhookConfiguration.KIND
RELEASE = "dynamo-platform"
DEPLOYMENT = f"{RELEASE}-dynamo-operator-controller-manager"
# The operator of these tests runs beside the cluster, where the API server cannot reach it by a Service.
BESIDE = "--set=dynamo-operator.webhook.enabled=false"
TOGETHER = "--set=dynamo-operator.namespacePolicy.releaseNamespace=false"
RESTRICTED = "--set=dynamo-operator.namespaceRestriction.enabled=true"


@contextmanager
def installed(
    helm: Helm, world: World, *values: str, chart: Path = PLATFORM, release: str = RELEASE
) -> Iterator[None]:
    """The platform as a release in the world's namespace; without webhooks unless values are given.

    Graphs of these tests are in that namespace too.
    """
    place = f"--namespace={world.namespace}"
    more = (TOGETHER,) if chart == PLATFORM else ()
    helm("install", release, chart, place, *(values or (BESIDE,)), *more)
    try:
        yield
    finally:
        helm("uninstall", release, place)


def pod_of_operator(world: World) -> tuple[str, tuple[str, ...]]:
    found = world.eventually(Deployment.KIND, DEPLOYMENT)
    pod = found["spec"]["template"]["spec"]
    return pod["serviceAccountName"], tuple(pod["containers"][0]["args"])


@contextmanager
def running(control_plane: ControlPlane, world: World, log: Path, *more: str) -> Iterator[OperatorProcess]:
    """The operator with the flags and the ServiceAccount of the Deployment, but listening on local ports."""
    account, flags = pod_of_operator(world)
    kubeconfig = control_plane.instance.service_account_kubeconfig(world.namespace, account)
    with OperatorProcess(kubeconfig, log, (*flags, *OFF, *more)) as operator:
        operator.ready()
        yield operator


def pods_of_graph(world: World) -> dict[str, str]:
    marked = "nvidia.com/dynamo-component"
    return {
        each["metadata"]["name"]: each["metadata"]["uid"]
        for each in world.list(PODS)
        if marked in each["metadata"].get("labels", {})
    }


def call_beside(control_plane: ControlPlane, port: int, *, keeps_bundle: bool = False) -> None:
    """Have the API server call the webhooks on this machine, as it cannot reach the chart's Service."""
    name = f"{RELEASE}-dynamo-operator-validating"
    found = json.loads(control_plane.kubectl("get", str(CONFIGURATION), name, "--output=json"))
    patch = [
        {
            "op": "replace",
            "path": f"/webhooks/{index}/clientConfig",
            "value": _beside(each, port, keeps_bundle=keeps_bundle),
        }
        for index, each in enumerate(found["webhooks"])
    ]
    control_plane.kubectl("patch", str(CONFIGURATION), name, "--type=json", f"--patch={json.dumps(patch)}")


def _beside(webhook: Object, port: int, *, keeps_bundle: bool) -> Object:
    path = f"/validate-nvidia-com-v1alpha1-{webhook['name'].removeprefix('v').partition('.')[0]}"
    bundle = webhook["clientConfig"].get("caBundle", "")
    kept = {"caBundle": bundle} if keeps_bundle and bundle else {}
    return {"url": f"https://127.0.0.1:{port}{path}", **kept}
