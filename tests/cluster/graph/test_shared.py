"""An object that two graphs or components use comes to rest."""

import time

import pytest

from cluster.audit import Audit
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.graph.test_graph import GRAPH
from cluster.world import World
from kube_runtime.types.kinds import ServiceAccount

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_two_users_of_one_object_do_not_take_turns_writing_it(world: World, kinds: ControlPlane) -> None:
    model = {"name": "Qwen/Qwen3-0.6B"}
    for name in ("one", "two"):
        decode = worker("decode", modelRef=model, resources=None)
        world.create(GRAPH, graph(name, Planner=service("planner"), Decode=decode))
    for name in ("one", "two"):
        world.eventually(GRAPH, name, is_ready)
    account = ServiceAccount.KIND
    world.eventually(
        account,
        "planner-serviceaccount",
        lambda it: 2 == len(it["metadata"].get("ownerReferences", [])),
    )
    audit = Audit(kinds.audit_log)
    audit.falls_silent(world.namespace)
    since = audit.now()
    time.sleep(2)
    assert {} == audit.calls(namespace=world.namespace, since=since)
