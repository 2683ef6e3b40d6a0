"""Ours takes over where the Go operator has been: nothing restarts, and what is not wanted any more goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.audit import Audit
from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.operator_process import OFF, OperatorProcess
from cluster.takeover.earlier import MANAGER, GoOperator, environment, managers
from cluster.world import CHILDREN, COMPONENT, GRAPH, World
from conformance.modes import COMMON
from conformance.recordings import Case
from dynamo_operator import labels
from dynamo_operator.labels import FINALIZER
from dynamo_operator.shared.cluster import GROVE, PodCliqueSet
from kube_runtime.types.kinds import Deployment, Ingress, Service
from kube_runtime.types.meta import Kind, Object

pytestmark = pytest.mark.cluster


def recorded(world: World, name: str, mode: str = "none") -> World:
    """The test's namespace, as the Go operator has left it."""
    GoOperator(world, Case(name), mode).has_run()
    return world


@contextmanager
def operator(control_plane: ControlPlane, there: World, folder: Path) -> Iterator[OperatorProcess]:
    flags = (*OFF, *COMMON, f"--restrictedNamespace={there.namespace}")
    with OperatorProcess(control_plane.kubeconfig, folder / "operator.log", flags) as process:
        process.ready()
        yield process
        assert '"level": "error"' not in process.log.read_text()


def is_taken_over(there: World, *kinds: Kind) -> bool:
    """Whether no owned object has the mark of the Go operator any more."""
    mark = labels.LAST_APPLIED_GENERATION
    children = [each for kind in kinds or CHILDREN for each in there.list(kind)]
    owned = [each for each in children if each["metadata"].get("ownerReferences")]
    return all(mark not in each["metadata"].get("annotations", {}) for each in owned)


def has_finalizer(there: World) -> bool:
    owners = [*there.list(GRAPH), *there.list(COMPONENT)]
    return any(FINALIZER in each["metadata"].get("finalizers", []) for each in owners)


def templates(there: World) -> dict[str, Object]:
    return {each["metadata"]["name"]: each["spec"]["template"] for each in there.list(Deployment.KIND)}


@pytest.mark.parametrize("name", ["modelref", "ingress-full", "restart-sequential"])
def test_nothing_restarts_and_all_fields_are_ours(
    kinds: ControlPlane, world: World, tmp_path: Path, name: str
) -> None:
    there = recorded(world, name)
    before = templates(there)
    with operator(kinds, there, tmp_path):
        there.until(lambda: is_taken_over(there), what=lambda: str(there.list(Deployment.KIND)))
        there.until(lambda: not has_finalizer(there))
        assert before == templates(there)
        for kind in CHILDREN:
            for each in there.list(kind):
                if each["metadata"].get("ownerReferences"):
                    assert (MANAGER, "Update") not in set(managers(each)), each


def test_a_workload_without_its_label_keeps_its_pods(
    kinds: ControlPlane, world: World, tmp_path: Path
) -> None:
    """No watch brings it: its name is found to be taken, and what was decided without it is decided again."""
    there = recorded(world, "envs-both-levels")
    before = templates(there)
    for name in before:
        there.patch(Deployment.KIND, name, {"metadata": {"labels": {labels.COMPONENT: None}}})
    with operator(kinds, there, tmp_path):
        there.until(lambda: is_taken_over(there), what=lambda: str(there.list(Deployment.KIND)))
        assert before == templates(there)
        for each in there.list(Deployment.KIND):
            assert labels.COMPONENT in each["metadata"]["labels"]


def test_what_has_no_label_and_is_not_wanted_any_more_goes(
    kinds: ControlPlane, world: World, tmp_path: Path
) -> None:
    there = recorded(world, "ingress-full")
    [left] = there.list(Ingress.KIND)
    assert not left["metadata"].get("labels")
    theirs = {"metadata": {"name": "theirs"}, "spec": left["spec"]}
    there.create(Ingress.KIND, theirs)
    there.patch(GRAPH, "g", {"spec": {"services": {"Frontend": {"ingress": None}}}})
    with operator(kinds, there, tmp_path):
        there.gone(Ingress.KIND, left["metadata"]["name"])
        there.until(lambda: is_taken_over(there))
        assert ["theirs"] == [each["metadata"]["name"] for each in there.list(Ingress.KIND)]


def test_a_take_over_costs_three_requests_for_each_object_and_then_none(
    kinds: ControlPlane, world: World, tmp_path: Path
) -> None:
    audit = Audit(kinds.audit_log)
    there = recorded(world, "agg-vllm")
    with operator(kinds, there, tmp_path):
        there.until(lambda: is_taken_over(there))
        calls = audit.calls(namespace=there.namespace)
        services = len(there.list(Service.KIND))
        found = {each.verb: n for each, n in calls.items() if each.resource == "services"}
        assert (services, 2 * services) == (found["get"], found["patch"])
        audit.falls_silent(there.namespace)


def test_a_variable_that_is_taken_out_of_the_graph_leaves_the_pods(
    kinds: ControlPlane, world: World, tmp_path: Path
) -> None:
    there = recorded(world, "envs-both-levels")
    with operator(kinds, there, tmp_path):
        there.until(lambda: is_taken_over(there))
        assert "FROM" in environment(templates(there)["g-w"])
        there.patch(GRAPH, "g", {"spec": {"services": {"W": {"envs": None}}}})
        there.eventually(
            Deployment.KIND, "g-w", lambda each: "FROM" not in environment(each["spec"]["template"])
        )
        component = there.read(COMPONENT, "g-w")
        assert "FROM" not in [each["name"] for each in component["spec"].get("envs", [])]


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_graph_whose_deletion_hangs_on_the_old_finalizer_goes(
    kinds: ControlPlane, world: World, tmp_path: Path, propagation: str
) -> None:
    there = recorded(world, "agg-vllm")
    there.delete(GRAPH, "g", propagation)
    there.eventually(GRAPH, "g", lambda each: "deletionTimestamp" in each["metadata"])
    with operator(kinds, there, tmp_path):
        there.gone(GRAPH, "g")
        there.gone(COMPONENT, "g-frontend")
        there.gone(Deployment.KIND, "g-frontend")


def filled(value: Any) -> Any:
    """A value without empty maps: to Grove, which reads it into structs, they are the same as none."""
    if isinstance(value, dict):
        return {name: filled(each) for name, each in value.items() if each != {}}
    return [filled(each) for each in value] if isinstance(value, list) else value


def test_a_set_of_grove_stays_as_it_is_and_is_ours(kinds: ControlPlane, world: World, tmp_path: Path) -> None:
    with installed(kinds, ("grove",), GROVE.kinds):
        there = recorded(world, "agg-vllm", "grove")
        (before,) = there.list(PodCliqueSet.KIND)
        with operator(kinds, there, tmp_path):
            there.until(lambda: is_taken_over(there, PodCliqueSet.KIND, Service.KIND))
            (after,) = there.list(PodCliqueSet.KIND)
            assert filled(before["spec"]["template"]) == filled(after["spec"]["template"])
            assert (MANAGER, "Update") not in set(managers(after))
        there.delete(GRAPH, "g")
        there.gone(PodCliqueSet.KIND, before["metadata"]["name"])
