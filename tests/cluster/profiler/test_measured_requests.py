"""A request that measures: candidates are deployed, loaded by a real client, compared and deleted."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.profiler.kubelet import BY_HAND, Kubelet
from cluster.requests.playing import REQUEST, state
from cluster.world import CONFIG_MAP, GRAPH, World
from kube_runtime.types.meta import Object
from simulated.frontend import Frontends, Pace, frontends

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

EXAMPLES = Path(__file__).parents[3] / "examples"
SLA = {"isl": 3000, "osl": 4, "ttft": 3000, "itl": 1000}
"""Far above what a busy machine needs, and far below what a slow graph takes here."""
_WAITS = "waiting until it is ready"
SLOW = Pace(first=4)


def a_request(url: str, **online: Any) -> Object:
    """A model whose graphs differ by the room that they leave for errors: there are some to measure."""
    config = {
        "sla": SLA,
        "hardware": {"gpuType": "l4"},
        "analytic": {"requestsPerSecond": 5, "engine": "formulas", "mode": "aggregated"},
        "online": {"frontendUrl": url, "secondsPerLoad": 0.1, **online},
    }
    profiling = {"profilerImage": "profiler:1", "resources": BY_HAND, "config": config}
    spec = {"model": "Qwen/Qwen3-14B", "backend": "vllm", "autoApply": True}
    return {"metadata": {"name": "chat"}, "spec": {**spec, "profilingConfig": profiling}}


class Order:
    """The Services of frontends, as they are asked first; those in `slow` by their place are slow."""

    def __init__(self, *slow: int) -> None:
        self.slow = slow
        self.services: list[str] = []

    def __call__(self, service: str) -> Pace:
        if service not in self.services:
            self.services.append(service)
        return SLOW if self.services.index(service) in self.slow else Pace()


@pytest.fixture
def order() -> Order:
    """The cheapest graph is slow."""
    return Order(0)


@pytest.fixture
def served(order: Order) -> Iterator[Frontends]:
    with frontends(order) as found:
        yield found


def measured(world: World) -> list[Object]:
    data = world.eventually(CONFIG_MAP, "dgdr-measured-chat")["data"]
    found: list[Object] = json.loads(data["measurements.json"])["candidates"]
    return found


def graphs(world: World) -> list[str]:
    return sorted(each["metadata"]["name"] for each in world.list(GRAPH))


def test_the_cheapest_graph_that_meets_its_targets_when_measured_is_taken(
    world: World, kubelet: Kubelet, served: Frontends, order: Order
) -> None:
    world.create(REQUEST, a_request(served.url))
    assert 0 == kubelet.runs("profile-chat")["profiler"], kubelet.log("profiler")
    body = world.eventually(REQUEST, "chat", lambda each: state(each) == "Ready")
    slow, quick = measured(world)
    assert slow["gpus"] < quick["gpus"]
    assert slow["loads"][0]["ttft"] >= SLOW.first
    assert len(slow["loads"]) == 1, "what fails half of the load is not given all of it"
    assert [each["rate"] for each in quick["loads"]] == [2.5, 5]
    assert all(each.get("failures", 0) == 0 for each in quick["loads"])
    assert {f"{each['graph']}-frontend" for each in (slow, quick)} == set(order.services)
    assert ["chat"] == graphs(world), "the candidates are gone"
    worker = world.eventually(GRAPH, "chat")["spec"]["services"]["Worker"]
    assert quick["gpus"] == worker["replicas"] * int(worker["resources"]["limits"]["gpu"])
    assert "measured: ttft" in kubelet.log("profiler")
    [owner] = world.eventually(CONFIG_MAP, "dgdr-measured-chat")["metadata"]["ownerReferences"]
    assert body["metadata"]["uid"] == owner["uid"]


def test_an_evicted_profiler_continues_with_the_next_candidate(
    kinds: ControlPlane, world: World, tmp_path: Path, served: Frontends, order: Order
) -> None:
    first, second = (Kubelet(kinds, world, tmp_path / each) for each in ("first", "second"))
    for each in (first, second):
        each.folder.mkdir()
    world.create(REQUEST, a_request(served.url))
    first.runs("profile-chat", evict_when=lambda: len(order.services) > 1)
    asked = dict(served.asked)
    assert 0 == second.runs("profile-chat")["profiler"], second.log("profiler")
    world.eventually(REQUEST, "chat", lambda each: state(each) == "Ready")
    slow, quick = order.services
    assert asked[slow] == served.asked[slow], "what was measured is not measured again"
    assert served.asked[quick] > asked[quick]
    assert "was measured before" in second.log("profiler")
    assert ["chat"] == graphs(world)


@pytest.mark.parametrize("order", [Order(0, 1, 2, 3, 4, 5, 6, 7)], ids=["slow"])
def test_a_request_that_no_measured_graph_meets_fails_with_what_was_measured(
    world: World, kubelet: Kubelet, served: Frontends
) -> None:
    world.create(REQUEST, a_request(served.url, candidates=2))
    assert 1 == kubelet.runs("profile-chat")["profiler"]
    body = world.eventually(REQUEST, "chat", lambda each: state(each) == "Failed")
    message = condition(body, "Profiling")["message"]
    assert "no candidate meets the targets when measured: " in message
    for gpus in (each["gpus"] for each in measured(world)):
        assert f"{gpus} GPUs (chat-" in message
    assert "ms is above 3000 ms" in message
    assert [] == graphs(world)


def test_graphs_that_do_not_become_ready_are_deleted_and_the_reason_is_reported(
    world: World, kubelet: Kubelet, served: Frontends
) -> None:
    base = yaml.safe_load((EXAMPLES / "vllm-aggregated.yaml").read_text(encoding="utf-8"))
    for component in base["spec"]["components"]:
        component["podTemplate"]["spec"]["nodeSelector"] = {"example.com/nowhere": "true"}
    text = yaml.safe_dump(base)
    world.create(CONFIG_MAP, {"metadata": {"name": "base"}, "data": {"disagg.yaml": text}})
    request = a_request(served.url, candidates=2)
    profiling = request["spec"]["profilingConfig"]
    profiling["configMapRef"] = {"name": "base"}
    profiling["config"]["deployment"] = {"deploymentTimeout": 1}
    world.create(REQUEST, request)
    assert 1 == kubelet.runs("profile-chat")["profiler"], kubelet.log("profiler")
    body = world.eventually(REQUEST, "chat", lambda each: state(each) == "Failed")
    assert condition(body, "Profiling")["message"].count("): not ready within 1 s: ") >= 2
    assert all("not ready within 1 s: " in each["problem"] for each in measured(world))
    assert [] == graphs(world)
    assert not served.asked


def test_a_profiler_that_is_killed_for_good_leaves_no_graph(
    world: World, kubelet: Kubelet, served: Frontends
) -> None:
    world.create(REQUEST, a_request(served.url))
    codes = kubelet.runs("profile-chat", kill_in=_WAITS)
    assert {"profiler": 137, "output-copier": 0} == codes
    world.eventually(REQUEST, "chat", lambda each: state(each) == "Failed")
    world.until(lambda: not graphs(world), what=lambda: str(graphs(world)))
