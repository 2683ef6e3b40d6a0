"""How graphs are deleted: in any order, the operator recreates nothing that is being deleted."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from cluster.world import COMPONENT, DEPLOYMENT, GRAPH, NAMESPACES, World
from faults.ending import births_and_deaths, ending
from faults.scenarios import a_graph, is_quite_ready
from faults.stage import Stage, at_rest, namespace
from kube_runtime.types.meta import Object

FINALIZER = "example.com/hold"
EMPTY: Object = {"Pods": {}, "Former specs": [], "Templates": {}}

pytestmark = pytest.mark.cluster


def created(happened: Counter[str]) -> list[str]:
    """What was created, no matter by which client."""
    return [each for each in happened if each.startswith("ADDED")]


def is_terminating(world: World) -> bool:
    body = world.get(GRAPH, "chat")
    return body is not None and "deletionTimestamp" in body["metadata"]


def outlives_its_namespace(stage: Stage, seconds: float | None) -> None:
    """See that an operator does; the namespace goes after that time. None means: when the graph is ready."""
    with namespace(stage.proxy) as world, stage.nursery.operator(world.namespace) as operator:
        operator.ready()
        world.create(GRAPH, a_graph())
        if seconds is None:
            at_rest(world, stage.proxy, is_quite_ready)
        else:
            time.sleep(seconds)
        world.delete(NAMESPACES, world.namespace)
        world.gone(NAMESPACES, world.namespace)
        at_rest(world, stage.proxy, lambda _: True)
        assert operator.ended is None
        assert '"level": "error"' not in operator.log.read_text(encoding="utf-8")
        world.create(NAMESPACES, {"metadata": {"name": world.namespace, "namespace": ""}})
        world.create(GRAPH, a_graph())
        world.until(lambda: is_quite_ready(world))


def test_a_namespace_may_vanish_while_a_graph_is_made_and_while_it_runs(stage: Stage) -> None:
    moments = (0.0, 0.1, 0.3, 0.6, None)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda seconds: outlives_its_namespace(stage, seconds), moments))


def test_a_foreground_deletion_ends_in_seconds_and_nothing_is_made_anew(stage: Stage) -> None:
    with namespace(stage.proxy) as world, stage.nursery.operator(world.namespace):
        world.create(GRAPH, a_graph())
        at_rest(world, stage.proxy, is_quite_ready)
        with births_and_deaths(world) as happened:
            world.delete(GRAPH, "chat", propagation="Foreground")
            world.gone(GRAPH, "chat")
            at_rest(world, stage.proxy, lambda _: True)
            assert [] == created(happened())
        assert EMPTY == ending(world).content


def test_nothing_is_made_for_a_graph_that_waits_for_its_end(stage: Stage) -> None:
    """As under a GitOps tool that holds the graph with a finalizer of its own while it prunes."""
    with namespace(stage.proxy) as world, stage.nursery.operator(world.namespace):
        held = a_graph()
        held["metadata"]["finalizers"] = [FINALIZER]
        world.create(GRAPH, held)
        at_rest(world, stage.proxy, is_quite_ready)
        with births_and_deaths(world) as happened:
            world.delete(GRAPH, "chat")
            world.until(lambda: is_terminating(world))
            world.delete(COMPONENT, "chat-frontend")
            world.gone(DEPLOYMENT, "chat-frontend")
            world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 2}}}})
            at_rest(world, stage.proxy, is_terminating)
            assert [] == created(happened())
        world.patch(GRAPH, "chat", {"metadata": {"finalizers": None}})
        world.until(lambda: EMPTY == ending(world).content)


def test_what_is_orphaned_stays_and_is_left_alone(stage: Stage) -> None:
    with namespace(stage.proxy) as world, stage.nursery.operator(world.namespace):
        world.create(GRAPH, a_graph())
        at_rest(world, stage.proxy, is_quite_ready)
        before = ending(world)
        with births_and_deaths(world) as happened:
            world.delete(GRAPH, "chat", propagation="Orphan")
            world.gone(GRAPH, "chat")
            at_rest(world, stage.proxy, lambda _: True)
            after = ending(world)
            deleted = happened()
        graph = "DynamoGraphDeployment chat"
        assert {name: uid for name, uid in before.uids.items() if name != graph} == after.uids
        assert {f"DELETED {graph}": 1} == deleted
        assert all("ownerReferences" not in each["metadata"] for each in world.list(COMPONENT))
        written = len(stage.proxy.writes_in(world.namespace))
        time.sleep(2)
        assert written == len(stage.proxy.writes_in(world.namespace))


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_graph_that_is_deleted_and_made_again_at_once_is_made_whole(propagation: str, stage: Stage) -> None:
    with namespace(stage.proxy) as world, stage.nursery.operator(world.namespace) as operator:
        world.create(GRAPH, a_graph())
        at_rest(world, stage.proxy, is_quite_ready)
        before = ending(world)
        world.delete(GRAPH, "chat", propagation=propagation)
        world.gone(GRAPH, "chat")
        world.create(GRAPH, a_graph())
        at_rest(world, stage.proxy, is_quite_ready)
        after = ending(world)
        assert "" == before.difference(after)
        assert () == after.orphans
        assert set() == set(before.uids.values()) & set(after.uids.values())
        assert '"level": "error"' not in operator.log.read_text(encoding="utf-8")
