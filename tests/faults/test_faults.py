"""Whatever happens between us and the API server, the end is the same, and nothing is done twice."""

import random
import time
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import COMPONENT, DEPLOYMENT, EVENTS, GRAPH, SERVICE, World
from faults.proxy import FAILURE, FaultyProxy, kubeconfig

GRAPHS = ("one", "two", "three")
MOST_WRITES = 110
"""That reach the API server; 69 without a fault, 75 and 79 with these."""

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("seed", [1, 2])
def test_faults_delay_the_end_and_do_not_change_it(
    seed: int, world: World, kinds: ControlPlane, tmp_path: Path
) -> None:
    dice = random.Random(seed)  # noqa: S311 - the same faults in each run
    proxy = FaultyProxy(kinds.server, world.tls, dice, is_faulty=False)
    with proxy.running():
        config = kubeconfig(proxy, tmp_path / "config")
        flags = (*OFF, f"--restrictedNamespace={world.namespace}")
        with OperatorProcess(config, tmp_path / "operator.log", flags) as operator:
            operator.ready()
            proxy.is_faulty = True
            for name in GRAPHS:
                world.create(GRAPH, graph(name))
            time.sleep(3)
            world.patch(GRAPH, "two", {"spec": {"services": {"Decode": {"replicas": 2}}}})
            world.patch(GRAPH, "three", {"spec": {"services": {"Prefill": None}}})
            world.eventually(SERVICE, "one-frontend")
            world.delete(SERVICE, "one-frontend")
            world.until(lambda: proxy.faults.total() > 10, what=lambda: str(proxy.faults))
            time.sleep(3)
            proxy.is_faulty = False
            for name in GRAPHS:
                world.eventually(GRAPH, name, is_ready)
            world.eventually(SERVICE, "one-frontend")
            world.gone(DEPLOYMENT, "three-prefill")
            assert operator.ended is None
            said = operator.log.read_text(encoding="utf-8")
    assert '"level": "error"' not in said
    assert len(proxy.writes) < MOST_WRITES, proxy.faults
    assert 8 == len(world.list(COMPONENT))
    two = world.eventually(DEPLOYMENT, "two-decode")
    assert 2 == two["status"]["readyReplicas"]
    # Users may be told of a failure that an object met again and again, and of nothing else.
    warnings = [each for each in world.list(EVENTS) if each["type"] == "Warning"]
    ours = [each for each in warnings if str(each.get("reportingComponent", "")).startswith("dynamo")]
    assert [] == [each for each in ours if not each["message"].endswith(f": {FAILURE}")]
