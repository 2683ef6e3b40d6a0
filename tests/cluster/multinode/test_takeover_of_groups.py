"""Groups of the Go operator's 1.x line, with the real LeaderWorkerSet controller: taken over, and given back.

The cluster stores v1beta1, and no conversion webhook answers, since nothing here needs one.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.served import serving
from cluster.takeover.newer import COMPONENT, GRAPH, NewerGoOperator, case_of
from cluster.world import DEPLOYMENT, PODS, SERVICE, World
from conformance.modes import COMMON
from dynamo_operator import labels
from dynamo_operator.shared.cluster import LeaderWorkerSet
from kube_runtime.types.meta import Kind

SETS = LeaderWorkerSet.KIND
STATEFUL_SETS = Kind("apps", "v1", "StatefulSet", "statefulsets")

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def stored(groups: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with v1beta1 stored; afterwards it has v1alpha1 alone again."""
    with serving(groups, "v1beta1", "v1alpha1"):
        yield groups


def pods(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.list(PODS)}


def workloads_are_ready(world: World) -> bool:
    """Whether the controllers have carried out the newest specs, and all pods run."""
    return (
        all(
            it.get("status", {}).get("readyReplicas") == it["spec"]["replicas"]
            and it["status"].get("updatedReplicas") == it["spec"]["replicas"]
            and condition(it, "UpdateInProgress").get("status") != "True"
            for it in world.list(SETS)
        )
        and all(
            it["status"].get("observedGeneration") == it["metadata"]["generation"]
            and it["status"].get("currentRevision") == it["status"].get("updateRevision")
            for it in world.list(STATEFUL_SETS)
        )
        and all(
            it["status"].get("observedGeneration") == it["metadata"]["generation"]
            and it["status"].get("readyReplicas") == it["spec"]["replicas"]
            for it in world.list(DEPLOYMENT)
        )
        and all(pod["status"].get("phase") == "Running" for pod in world.list(PODS))
    )


def is_taken_over(world: World) -> bool:
    mark = labels.LAST_APPLIED_GENERATION
    bodies = [body for kind in (SETS, SERVICE, COMPONENT) for body in world.list(kind)]
    return not any(mark in body["metadata"].get("annotations", {}) for body in bodies)


@pytest.mark.parametrize("name", ["n-multinode-update", "n-multinode-sglang"])
def test_no_group_is_replaced_by_a_take_over_nor_by_the_way_back(
    stored: ControlPlane, place: World, tmp_path: Path, name: str
) -> None:
    there = NewerGoOperator(place, case_of(name), "lws")
    there.has_run()
    [found] = place.list(SETS)
    count = found["spec"]["replicas"] * found["spec"]["leaderWorkerTemplate"]["size"]
    group = found["metadata"]["name"]

    def of_groups() -> dict[str, str]:
        return {name: uid for name, uid in pods(place).items() if name.startswith(f"{group}-")}

    place.until(
        lambda: len(of_groups()) == count and workloads_are_ready(place), what=lambda: str(pods(place))
    )
    before, recorded = pods(place), place.read(GRAPH, "g")["metadata"]["annotations"]
    flags = (*OFF, *COMMON, f"--restrictedNamespace={place.namespace}")
    with OperatorProcess(stored.kubeconfig, tmp_path / "log", flags) as operator:
        operator.ready()
        place.until(lambda: is_taken_over(place), what=operator.log.read_text)
        place.eventually(GRAPH, "g", is_ready)
        place.until(lambda: workloads_are_ready(place))
        assert before == pods(place)
    # It finds its workers by this annotation, which is a part of their names.
    annotations = place.read(GRAPH, "g")["metadata"]["annotations"]
    assert recorded[labels.CURRENT_WORKER_HASH_V2] == annotations[labels.CURRENT_WORKER_HASH_V2]
    there.reconciles_again()
    place.until(lambda: workloads_are_ready(place))
    assert before == pods(place)
    # The controller does replace pods of a changed template.
    variables = [{"name": "EDITED", "value": "yes"}]
    template = place.read(SETS, group)["spec"]["leaderWorkerTemplate"]["workerTemplate"]
    template["spec"]["containers"][0]["env"] += variables
    place.patch(SETS, group, {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}})
    place.until(lambda: not {*of_groups().values()} & {*before.values()}, what=lambda: str(pods(place)))
    with OperatorProcess(stored.kubeconfig, tmp_path / "log", flags) as operator:  # which removes finalizers
        place.delete(GRAPH, "g")
        place.until(lambda: not place.list(GRAPH) and not place.list(COMPONENT))
        operator.ready()
