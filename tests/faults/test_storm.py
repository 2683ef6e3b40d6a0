"""In a storm of conflicts and outages the operator comes to the same end, at no more than twice the cost."""

import random
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.graph.test_graph import GRAPH
from cluster.world import World
from faults.ending import Ending, ending
from faults.nursery import Nursery, nursery
from faults.proxy import kubeconfig
from faults.scenarios import IMAGE, PREFILL
from faults.stage import at_rest, namespace
from faults.storm import Storm
from kube_runtime.types.meta import Object

NAMES = ("one", "two", "three", "four")
LIMIT = 2.0
"""How many times the writes of the calm run may reach the API server."""

pytestmark = [pytest.mark.cluster, pytest.mark.long]


@pytest.fixture
def storm(kinds: ControlPlane, tls: ssl.SSLContext) -> Iterator[Storm]:
    dice = random.Random(3)  # noqa: S311 - the same faults in each run
    with Storm(kinds.server, tls, dice).running() as proxy:
        yield proxy


@pytest.fixture
def operators(storm: Storm, tmp_path: Path) -> Iterator[Nursery]:
    with nursery(kubeconfig(storm, tmp_path / "config"), tmp_path) as running:
        yield running


def a_graph(name: str) -> Object:
    decode = worker("decode", resources=None)
    return graph(name, Frontend=service("frontend"), Decode=decode)


def are_ready(world: World) -> bool:
    found = world.list(GRAPH)
    return len(NAMES) == len(found) and all(is_ready(each) for each in found)


def lived_through(storm: Storm, operators: Nursery, *, is_on: bool) -> tuple[int, Ending]:
    """The writes that it took to make and to change some graphs, and the end."""
    with namespace(storm) as world, operators.operator(world.namespace) as operator:
        operator.ready()
        storm.is_on = is_on
        for name in NAMES:
            world.create(GRAPH, a_graph(name))
        at_rest(world, storm, are_ready)
        changes = {"Frontend": IMAGE, "Prefill": PREFILL, "Decode": {"replicas": 2}}
        for name in NAMES:
            world.patch(GRAPH, name, {"spec": {"services": changes}})
        at_rest(world, storm, are_ready)
        for name in NAMES:
            world.patch(GRAPH, name, {"spec": {"services": {"Prefill": None}}})
        at_rest(world, storm, are_ready)
        storm.is_on = False
        assert not operator.has_ended
        return len(storm.writes_in(world.namespace)), ending(world)


def test_a_storm_changes_nothing_and_costs_at_most_twice_the_writes(
    storm: Storm, operators: Nursery, measured: list[str]
) -> None:
    writes, expected = lived_through(storm, operators, is_on=False)
    in_storm, actual = lived_through(storm, operators, is_on=True)
    measured.append(f"storm: {writes} writes when calm, {in_storm} in it; {dict(storm.faults)}")
    assert "" == expected.difference(actual)
    assert () == actual.orphans
    assert storm.faults["409"] > writes / 10, storm.faults
    assert LIMIT * writes >= in_storm, (writes, in_storm, storm.faults)
