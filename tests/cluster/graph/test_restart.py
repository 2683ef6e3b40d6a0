"""The operator may die at any moment, and may start again: the end is always the same."""

import json
import random
import time
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest

from cluster.audit import Audit
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.graph.test_graph import COMPONENT, DEPLOYMENT, GRAPH, SERVICE
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from dynamo_operator import labels
from kube_runtime.kind import Object
from kube_runtime.types.kinds import Role, RoleBinding, ServiceAccount

KINDS = (GRAPH, COMPONENT, DEPLOYMENT, SERVICE, ServiceAccount.KIND, Role.KIND, RoleBinding.KIND)
# What differs between two runs that end alike: identities, times, addresses that were handed out.
VOLATILE = frozenset(
    [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "managedFields",
        "clusterIP",
        "clusterIPs",
        "generation",
        "observedGeneration",
        "lastTransitionTime",
        "lastUpdateTime",
        "message",
    ]
)

pytestmark = pytest.mark.cluster


@pytest.fixture
def lone_operator(kinds: ControlPlane, namespace: str, tmp_path: Path) -> OperatorProcess:
    """An operator for this test's namespace only, not started."""
    flags = (*OFF, f"--restrictedNamespace={namespace}")
    return OperatorProcess(kinds.kubeconfig, tmp_path / "operator.log", flags)


def without_gpus(name: str) -> Object:
    """A graph of which many fit on the nodes."""
    roles = {role.title(): worker(role, resources=None) for role in ("prefill", "decode")}
    return graph(name, Frontend=service("frontend"), **roles)


def lasting(value: Any, namespace: str) -> Any:
    """A JSON value without what differs between two runs."""
    if isinstance(value, dict):
        kept = {name: each for name, each in value.items() if name not in VOLATILE}
        return {name: lasting(each, namespace) for name, each in sorted(kept.items())}
    if isinstance(value, list):
        return [lasting(each, namespace) for each in value]
    return value.replace(namespace, "NAMESPACE") if isinstance(value, str) else value


def snapshot(world: World, name: str) -> Object:
    """All that exists of a graph, without what differs between two runs."""
    everything = {str(kind): _named_after(name, world.list(kind)) for kind in KINDS}
    for items in everything.values():
        for each in items:
            notes = each["metadata"].get("annotations", {})
            # Hashes of texts that hold the namespace; compared between starts, not between runs.
            notes.pop(labels.LAST_APPLIED_HASH, None)
            # Of the last write: how many there are depends on their moments.
            notes.pop(labels.OWNER_GENERATION, None)
    result: Object = lasting(everything, world.namespace)
    return result


def _named_after(name: str, items: list[Object]) -> list[Object]:
    return [each for each in items if f"{each['metadata']['name']}-".startswith(f"{name}-")]


def versions(world: World) -> dict[str, str]:
    """The resource version of each object that the operator writes."""
    return {
        f"{kind} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in KINDS
        for each in world.list(kind)
    }


def end(world: World, name: str) -> str:
    """The snapshot as text, without the name of the graph."""
    return json.dumps(snapshot(world, name), indent=1, sort_keys=True).replace(name, "RUN")


def ends_as(world: World, name: str, expected: str) -> None:
    """Return when the graph has this end: counts that no condition depends on may follow a moment later."""

    def difference() -> str:
        found = end(world, name).splitlines()
        return "\n".join(unified_diff(expected.splitlines(), found, n=8, lineterm=""))

    world.until(lambda: not difference(), what=difference)


@pytest.mark.long
def test_killed_at_random_moments_it_always_ends_the_same(
    world: World, lone_operator: OperatorProcess, kinds: ControlPlane
) -> None:
    dice = random.Random(20)  # noqa: S311 - a different moment in each run, the same in each session
    calm = ""
    with lone_operator:
        lone_operator.ready()
        for run in range(12):
            name = f"run-{run}"
            world.create(GRAPH, without_gpus(name))
            if calm:
                time.sleep(dice.uniform(0.0, 0.6))
                lone_operator.kill()
                lone_operator.start()
            world.eventually(GRAPH, name, is_ready)
            if not calm:
                Audit(kinds.audit_log).falls_silent(world.namespace)
                calm = end(world, name)
            ends_as(world, name, calm)


def test_a_second_start_changes_nothing(
    world: World, lone_operator: OperatorProcess, kinds: ControlPlane
) -> None:
    with lone_operator:
        lone_operator.ready()
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        audit = Audit(kinds.audit_log)
        audit.falls_silent(world.namespace)
        assert 0 == lone_operator.stop()
        before = versions(world)
        since = audit.now()
        lone_operator.start()
        lone_operator.ready()
        time.sleep(2)
    assert before == versions(world)
    assert {} == audit.calls(namespace=world.namespace, since=since)


def test_a_graph_of_three_services_costs_at_most_45_requests(
    world: World, lone_operator: OperatorProcess, kinds: ControlPlane
) -> None:
    audit = Audit(kinds.audit_log)
    with lone_operator:
        lone_operator.ready()
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        audit.falls_silent(world.namespace)
        creation = audit.calls(namespace=world.namespace)
        since = audit.now()
        time.sleep(2)
        settled = audit.calls(namespace=world.namespace, since=since)
    assert 45 >= creation.total(), creation
    assert {} == settled


def test_a_graph_edited_while_nobody_watched_is_brought_up_to_date(
    world: World, lone_operator: OperatorProcess
) -> None:
    with lone_operator:
        lone_operator.ready()
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        assert 0 == lone_operator.stop()
        world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 3}}}})
        world.delete(SERVICE, "chat-frontend")
        world.create(GRAPH, graph("other", Frontend=service("frontend")))
        lone_operator.start()
        ready = world.eventually(GRAPH, "chat", is_ready)
        world.eventually(GRAPH, "other", is_ready)
    assert 3 == ready["status"]["services"]["Decode"]["replicas"]
    assert world.get(SERVICE, "chat-frontend")
