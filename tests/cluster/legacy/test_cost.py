"""A DynamoDeployment costs about as many requests as a DynamoGraphDeployment of the same size."""

import pytest

from cluster.audit import Audit
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.graph.test_graph import GRAPH
from cluster.legacy.deployments import DEPLOYMENT, disagg, is_successful, with_graph, with_image
from cluster.world import World

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

MOST = 1.2


def test_five_services_cost_as_many_requests_as_in_a_graph(world: World, kinds: ControlPlane) -> None:
    audit = Audit(kinds.audit_log)
    with_graph(world)
    with_image(world)
    made = disagg()
    for each in made["spec"]["services"].values():
        each |= {"replicas": 1, "resources": {"requests": None, "limits": None}}
    since = audit.now()
    world.create(DEPLOYMENT, made)
    world.eventually(DEPLOYMENT, "disagg", is_successful)
    audit.falls_silent(world.namespace)
    ours = audit.calls(namespace=world.namespace, since=since)
    workers = {f"Worker{each}": worker("decode", resources=None) for each in range(4)}
    since = audit.now()
    world.create(GRAPH, graph("chat", Frontend=service("frontend"), **workers))
    world.eventually(GRAPH, "chat", is_ready)
    audit.falls_silent(world.namespace)
    graphs = audit.calls(namespace=world.namespace, since=since)
    assert ours.total() <= MOST * graphs.total(), (ours, graphs)
