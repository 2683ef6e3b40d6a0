"""Groups of the Go operator of the 1.x line: one LeaderWorkerSet with several replicas stays one."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cluster.conftest import ControlPlane, definitions
from cluster.operator_process import OFF, OperatorProcess
from cluster.takeover import newer
from cluster.takeover.test_versions import pods_run
from cluster.world import PODS, World
from conformance.modes import COMMON
from conformance.newer_recordings import NewerCase, Recorded
from dynamo_operator import labels
from dynamo_operator.crds import custom_resource_definitions
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodGroup
from kube_runtime.crd import ConversionWebhook

pytestmark = pytest.mark.cluster

GROUPS = 2


@pytest.fixture(scope="module")
def storing_v1beta1(groups: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """CRDs as the 1.x line leaves them; the operator needs no conversion."""
    folder = tmp_path_factory.mktemp("versions")
    both = custom_resource_definitions(ConversionWebhook("default", "no-operator"), "v1beta1")
    file = folder / "versions.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [*both]}))
    groups.install_crds(files=[file])
    yield
    status = '{"status": {"storedVersions": ["v1alpha1"]}}'  # no object is left
    for crd in (crd["metadata"]["name"] for crd in both if len(crd["spec"]["versions"]) > 1):
        groups.kubectl("patch", "crd", crd, "--subresource=status", "--type=merge", f"--patch={status}")
    groups.install_crds(files=[definitions(folder)])


def with_groups(case: NewerCase, number: int) -> NewerCase:
    """The case with another number of groups; the recorded one does not fit the nodes."""
    objects = copy.deepcopy(case.after("lws", 0).objects)
    for body in objects:
        if body["kind"] == newer.GRAPH.name:
            body["spec"]["components"][0]["replicas"] = number
        elif body["kind"] in (newer.COMPONENT.name, LeaderWorkerSet.KIND.name):
            body["spec"]["replicas"] = number
        if body["kind"] == LeaderWorkerSet.KIND.name:
            del body["spec"]["rolloutStrategy"]  # its own webhook had not run when it was recorded
    return NewerCase(case.name, case.source, case.inputs, {"lws": (Recorded(objects),)}, case.output)


@pytest.mark.usefixtures("storing_v1beta1")
def test_its_pods_stay_and_it_is_scaled_in_place(groups: ControlPlane, place: World, tmp_path: Path) -> None:
    case = with_groups(newer.case_of("multinode-scale-down"), GROUPS)
    newer.NewerGoOperator(groups, place, case, "lws").has_run()
    pods_run(place, 2 * GROUPS)
    before = {pod["metadata"]["uid"] for pod in place.list(PODS)}
    (component,) = place.list(newer.COMPONENT)
    flags = (*OFF, *COMMON, f"--restrictedNamespace={place.namespace}")
    with OperatorProcess(groups.kubeconfig, tmp_path / "operator.log", flags) as operator:
        operator.ready()

        def is_ours() -> bool:
            (groups_of_pods,) = place.list(LeaderWorkerSet.KIND)
            return labels.LAST_APPLIED_GENERATION not in groups_of_pods["metadata"]["annotations"]

        place.until(is_ours, what=lambda: json.dumps(place.list(LeaderWorkerSet.KIND)))
        place.until(
            lambda: place.read(newer.GRAPH, "g")["status"]["state"] == "successful",
            what=lambda: json.dumps(place.read(newer.GRAPH, "g")["status"]),
        )
        assert before == {pod["metadata"]["uid"] for pod in place.list(PODS)}
        assert [component["metadata"]["uid"]] == [it["metadata"]["uid"] for it in place.list(newer.COMPONENT)]
        (status,) = place.read(newer.GRAPH, "g")["status"]["components"].values()
        suffix = component["metadata"]["labels"][labels.WORKER_HASH]
        assert f"{place.namespace}-g-{suffix}" == status["runtimeNamespace"]
        components = place.read(newer.GRAPH, "g")["spec"]["components"]
        place.patch(newer.GRAPH, "g", {"spec": {"components": [{**components[0], "replicas": 1}]}})
        pods_run(place, 2)
        assert before > {pod["metadata"]["uid"] for pod in place.list(PODS)}
        assert [] == place.list(PodGroup.KIND)
    place.delete(newer.GRAPH, "g")
    place.gone(newer.GRAPH, "g")
    place.until(lambda: not place.list(newer.COMPONENT))
