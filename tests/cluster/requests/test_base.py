"""The graph from which profiling starts reaches the profiler with what its temporary graphs need to run."""

import json

import pytest

from cluster.requests.playing import JOB, REQUEST, WORKER, Player, a_graph, a_request, documents
from cluster.world import CONFIG_MAP, World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

TOLERATION = {"key": "nvidia.com/gpu", "operator": "Exists"}
PROFILING: Object = {"configMapRef": {"name": "base", "key": "mine"}, "tolerations": [TOLERATION]}


def mounted(world: World) -> Object:
    """Where the Job mounts the base graph from."""
    volumes = world.eventually(JOB, "profile-chat")["spec"]["template"]["spec"]["volumes"]
    (found,) = (each["configMap"] for each in volumes if each["name"] == "profiling-config")
    return dict(found)


def test_temporary_graphs_are_made_of_a_base_that_tolerates_what_profiling_does(
    world: World, player: Player
) -> None:
    text = documents(a_graph())
    world.create(CONFIG_MAP, {"metadata": {"name": "base"}, "data": {"mine": text}})
    request = world.create(REQUEST, a_request(profiling=PROFILING))
    player.is_in("Profiling")
    volume = mounted(world)
    (item,) = volume["items"]
    assert "disagg.yaml" == item["path"]
    base = world.eventually(CONFIG_MAP, volume["name"])
    services = json.loads(base["data"][item["key"]])["spec"]["services"]
    pod = services["W"]["extraPodSpec"]
    assert [TOLERATION] == pod.pop("tolerations")
    assert WORKER["extraPodSpec"] == pod
    assert "tolerations" not in services["Frontend"]["extraPodSpec"]
    assert [request["metadata"]["uid"]] == [each["uid"] for each in base["metadata"]["ownerReferences"]]
    assert {"mine": text} == world.eventually(CONFIG_MAP, "base")["data"]
    player.finds(a_graph())
    player.is_in("Ready")
    world.delete(REQUEST, "chat")
    world.gone(JOB, "profile-chat")
    world.create(REQUEST, a_request(profiling=PROFILING))
    player.is_in("Profiling")
    anew = mounted(world)["name"]
    assert anew != volume["name"], "a request that was made anew has a base of its own"
    world.gone(CONFIG_MAP, volume["name"])
    assert world.get(CONFIG_MAP, anew) is not None
