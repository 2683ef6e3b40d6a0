"""Pods that we would render otherwise, and graphs on a withheld Grove, stay as the Go operator made them."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.operator_process import OFF, OperatorProcess
from cluster.permissions.conftest import Install, install
from cluster.permissions.roles import NAMES, Installation
from cluster.takeover.earlier import MANAGER, environment, managers
from cluster.takeover.test_takeover import filled, is_taken_over, operator, recorded, templates
from cluster.world import GRAPH, World
from conformance.modes import COMMON, MODES
from conformance.takeover import settings_of
from dynamo_graphs.reader import Reading
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.shared.cluster import GROVE, PodCliqueSet
from dynamoctl.installation.checks import CheckResult, Finding
from dynamoctl.installation.permissions import Feature, Name
from dynamoctl.installation.upgrade import pods
from kube_runtime.client.connect import connect
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Kind, Object

pytestmark = [pytest.mark.cluster, pytest.mark.long]

EDIT = {"spec": {"services": {"W": {"envs": [{"name": "NEW", "value": "yes"}]}}}}


def note(there: World, kind: Kind, name: str) -> str:
    """Which templates of a workload are kept."""
    found = there.read(kind, name)
    kept: str = found["metadata"]["annotations"].get(labels.ADOPTED_TEMPLATES, "")
    return kept


async def foreseen(control_plane: ControlPlane, there: World) -> Finding:
    """What `dynamoctl check --before-upgrade` says of pods."""
    async with await connect(control_plane.kubeconfig, None) as transport:
        return await pods(Reading(transport), settings_of(MODES["none"]), there.namespace)


@pytest.mark.parametrize("name", ["labels-annotations-all", "cache-vllm-default"])
def test_an_edit_changes_the_pods_of_its_service_only(
    kinds: ControlPlane, world: World, tmp_path: Path, name: str
) -> None:
    there = recorded(world, name)
    before = templates(there)
    with operator(kinds, there, tmp_path):
        there.until(lambda: is_taken_over(there))
        assert before == templates(there)
        assert note(there, Deployment.KIND, "g-w").startswith("pods=")
    with operator(kinds, there, tmp_path):
        there.patch(GRAPH, "g", EDIT)
        there.eventually(Deployment.KIND, "g-w", lambda each: "NEW" in environment(each["spec"]["template"]))
        there.until(lambda: not note(there, Deployment.KIND, "g-w"))
        assert before.get("g-frontend") == templates(there).get("g-frontend")


def test_an_edit_while_no_operator_ran_is_not_lost(kinds: ControlPlane, world: World, tmp_path: Path) -> None:
    there = recorded(world, "labels-annotations-all")
    before = templates(there)
    found = asyncio.run(foreseen(kinds, there))
    assert found.verdict is CheckResult.OK
    assert f"2 keep their template until they are edited: {there.namespace}/g-f" in found.text
    there.patch(GRAPH, "g", EDIT)
    found = asyncio.run(foreseen(kinds, there))
    assert f"pods would be replaced: {there.namespace}/g-w; 1 keep" in found.text
    with operator(kinds, there, tmp_path):
        there.eventually(Deployment.KIND, "g-w", lambda each: "NEW" in environment(each["spec"]["template"]))
        there.until(lambda: is_taken_over(there))
        assert before.get("g-frontend") == templates(there).get("g-frontend")


def test_a_kept_template_can_be_restarted_and_scaled_and_is_not_edited_by_hand(
    kinds: ControlPlane, world: World, tmp_path: Path
) -> None:
    there = recorded(world, "labels-annotations-all")
    before = templates(there)
    with operator(kinds, there, tmp_path):
        there.until(lambda: is_taken_over(there))
        in_namespace = f"--namespace={there.namespace}"
        kinds.kubectl("rollout", "restart", in_namespace, "deployment/g-w")
        there.patch(GRAPH, "g", {"spec": {"services": {"W": {"replicas": 2}}}})
        there.eventually(Deployment.KIND, "g-w", lambda each: each["spec"]["replicas"] == 2)
        restarted = templates(there)["g-w"]
        (own,) = restarted["metadata"].pop("annotations")
        assert own == "kubectl.kubernetes.io/restartedAt"
        assert before["g-w"] == restarted
        kinds.kubectl("set", "image", in_namespace, "deployment/g-w", "main=busybox")
        there.eventually(Deployment.KIND, "g-w", lambda each: image(each) != "busybox")
        there.until(lambda: not note(there, Deployment.KIND, "g-w"))
        there.patch(GRAPH, "g", {"spec": {"restart": {"id": "now"}}})
        there.eventually(Deployment.KIND, "g-frontend", lambda each: restart(each) == "now")


def image(deployment: Object) -> str:
    found: str = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    return found


def restart(deployment: Object) -> str:
    annotations = deployment["spec"]["template"]["metadata"].get("annotations", {})
    found: str = annotations.get("nvidia.com/restartAt", "")
    return found


def cliques(there: World) -> dict[str, Any]:
    (found,) = there.list(PodCliqueSet.KIND)
    return {
        each["name"]: [each.get("labels"), each.get("annotations"), filled(each["spec"]["podSpec"])]
        for each in found["spec"]["template"]["cliques"]
    }


@pytest.mark.parametrize("name", ["multinode-mixed", "extrapodmetadata"])
def test_cliques_of_grove_stay_until_their_service_is_edited(
    kinds: ControlPlane, world: World, tmp_path: Path, name: str
) -> None:
    with installed(kinds, ("grove",), GROVE.kinds):
        there = recorded(world, name, "grove")
        before = cliques(there)
        (service, *_) = [each for each in services(there) if each.lower() != "frontend"]
        with operator(kinds, there, tmp_path):
            there.until(lambda: is_taken_over(there, PodCliqueSet.KIND))
            assert before == cliques(there)
            (found,) = there.list(PodCliqueSet.KIND)
            assert (MANAGER, "Update") not in set(managers(found))
            edit = {"spec": {"services": {service: {"envs": [{"name": "NEW", "value": "yes"}]}}}}
            there.patch(GRAPH, "g", edit)
            there.until(lambda: "NEW" in str(cliques(there)))
            same = [each for each in before if not each.startswith(service.lower())]
            after = cliques(there)
            assert [before[each] for each in same] == [after[each] for each in same]
        there.delete(GRAPH, "g")
        there.until(lambda: not there.list(PodCliqueSet.KIND))


def services(there: World) -> Iterator[str]:
    graph = there.read(GRAPH, "g")
    yield from graph["spec"]["services"]


__all__ = ["install"]
FLAGS = (
    *OFF,
    *COMMON,
    f"--planner-cluster-role-name={NAMES[Name.PLANNER_ROLE]}",
    f"--epp-cluster-role-name={NAMES[Name.EPP_ROLE]}",
)


def test_no_pod_runs_twice_and_the_right_to_grove_is_enough(
    kinds: ControlPlane, world: World, install: Install, tmp_path: Path
) -> None:
    features = {Feature.CLUSTER_WIDE, Feature.SSH_KEYS}
    kubeconfig = install(Installation(world.namespace, features))
    with installed(kinds, ("grove",), GROVE.kinds):
        there = recorded(world, "agg-vllm", "grove")
        (before,) = there.list(PodCliqueSet.KIND)
        with OperatorProcess(kubeconfig, tmp_path / "log", FLAGS) as operator:
            operator.ready()
            graph = there.eventually(GRAPH, "g", lambda each: bool(condition(each, "Ready")))
            ready = condition(graph, "Ready")
            assert "selected_workload_provider_unavailable" == ready["reason"]
            assert "Grove is installed, but the operator may not read" in ready["message"]
            assert "dynamo-operator.optionalApis.grove=true" in ready["message"]
        with OperatorProcess(kubeconfig, tmp_path / "again", FLAGS) as operator:
            operator.ready()
            assert not there.list(DynamoComponentDeployment.KIND)
            assert not there.list(Deployment.KIND)
            assert [before] == there.list(PodCliqueSet.KIND)
            install(Installation(world.namespace, {*features, Feature.GROVE}))
            there.until(lambda: is_taken_over(there, PodCliqueSet.KIND))
            (after,) = there.list(PodCliqueSet.KIND)
            assert filled(before["spec"]["template"]) == filled(after["spec"]["template"])
            assert not there.list(Deployment.KIND)
        there.delete(GRAPH, "g")
        there.gone(PodCliqueSet.KIND, before["metadata"]["name"])
