"""Changes of a spec in each state, and failures whose cause a user removes."""

import pytest

from cluster.conditions import condition
from cluster.requests.playing import JOB, REQUEST, Player, a_graph, a_request, state, terminated
from cluster.world import CONFIG_MAP, GRAPH, PODS, World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

OTHER = {"spec": {"model": "other/model"}}


def test_a_late_change_is_reported_once_and_has_no_effect(world: World, player: Player) -> None:
    before = player.is_served(autoApply=True)
    world.patch(REQUEST, "chat", OTHER)
    player.said("SpecChangeRejected")
    world.patch(REQUEST, "chat", {"metadata": {"labels": {"woken": "again"}}})
    body = world.eventually(
        REQUEST, "chat", lambda each: condition(each, "Succeeded").get("observedGeneration") == 2
    )
    assert state(before) == state(body)
    assert 1 == body["status"]["observedGeneration"]
    assert "Qwen/Qwen3-0.6B" == body["status"]["acceptedSpec"]["model"]
    assert 1 == player.events().count("SpecChangeRejected")


def test_a_failed_request_starts_anew_with_a_changed_spec(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    player.ends("Failed", terminated(1, "no such model"), terminated(0))
    player.is_in("Failed")
    first = world.read(JOB, "profile-chat")
    world.patch(REQUEST, "chat", OTHER)
    body = player.is_in("Profiling")
    assert 2 == body["status"]["observedGeneration"]
    second = world.eventually(
        JOB, "profile-chat", lambda each: each["metadata"]["uid"] != first["metadata"]["uid"]
    )
    args = second["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "model: other/model" in args[1]
    player.finds(a_graph())
    body = player.is_in("Ready")
    assert "True" == condition(body, "SpecGenerated")["status"]


HELD = {"metadata": {"finalizers": ["tests.example/held"]}}


def wait_for_pod_gc(world: World) -> None:
    """Return just after a run of the pod garbage collector, which ends unscheduled pods every 20 seconds."""
    spec = {"schedulingGates": [{"name": "tests.example/gate"}], "containers": [{"name": "c", "image": "c"}]}
    world.create(PODS, {"metadata": {"name": "held", **HELD["metadata"]}, "spec": spec})
    world.delete(PODS, "held")
    world.eventually(PODS, "held", lambda each: each["status"]["phase"] == "Failed")
    world.patch(PODS, "held", {"metadata": {"finalizers": None}})


def test_a_request_that_waits_for_pods_of_an_earlier_job_names_them(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    player.is_in("Profiling")
    pod = player.pod()["metadata"]["name"]
    world.patch(PODS, pod, HELD)
    wait_for_pod_gc(world)
    world.delete(JOB, "profile-chat")
    player.is_in("Failed")
    world.patch(REQUEST, "chat", OTHER)
    body = world.eventually(
        REQUEST, "chat", lambda each: condition(each, "Profiling").get("reason") == "WaitingForEarlierJob"
    )
    assert "Pending" == state(body)
    assert "WaitingForEarlierJob" == condition(body, "Succeeded")["reason"]
    text = f"Profiling waits for an earlier Job to terminate: 1 of its pods has not terminated: {pod}"
    assert text == body["status"]["message"] == condition(body, "Profiling")["message"]
    assert [] == world.list(JOB)
    world.patch(PODS, pod, {"metadata": {"finalizers": None}})
    body = player.is_in("Profiling")
    assert "ProfilingRunning" == condition(body, "Profiling")["reason"]
    assert "Profiling" == condition(body, "Succeeded")["reason"]


def test_a_paused_request_does_nothing_until_it_is_unpaused(world: World, player: Player) -> None:
    paused = {"metadata": {"name": "chat", "annotations": {"nvidia.com/paused": "true"}}}
    world.create(REQUEST, {**a_request(), **paused})
    world.eventually(REQUEST, "chat", lambda each: condition(each, "Succeeded").get("reason") == "Paused")
    assert [] == world.list(JOB)
    world.patch(REQUEST, "chat", {"metadata": {"annotations": {"nvidia.com/paused": None}}})
    body = player.is_in("Profiling")
    assert "Profiling" == condition(body, "Succeeded")["reason"]


def test_what_the_profiler_says_of_itself_is_shown(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    player.is_in("Profiling")
    player.writes(profiler_status_yaml="phase: SweepingDecode\nmessage: 3 of 8 candidates")
    body = world.eventually(
        REQUEST, "chat", lambda each: each["status"].get("profilingPhase") == "SweepingDecode"
    )
    assert "Profiling is in progress: 3 of 8 candidates" == body["status"]["message"]


def test_config_maps_belong_to_the_graph_that_mounts_them_and_not_to_that_of_another_request(
    world: World, player: Player
) -> None:
    for name, text in (("one", "1"), ("two", "2")):
        world.create(REQUEST, a_request(name, autoApply=True))
        player.finds(data(text), a_graph(Planner=planner()), name=name)
        player.is_in("Ready", name)
    for name, text, mounted in (
        ("one", "1", "planner-profile-data"),
        ("two", "2", "planner-profile-data-two"),
    ):
        graph, found = world.eventually(GRAPH, name), world.eventually(CONFIG_MAP, mounted)
        assert text == found["data"]["a.json"]
        assert [graph["metadata"]["uid"]] == [each["uid"] for each in found["metadata"]["ownerReferences"]]
        services = graph["spec"]["services"]
        assert {"enabled": True} == services["W"]["scalingAdapter"]
        assert mounted == services["Planner"]["extraPodSpec"]["volumes"][0]["configMap"]["name"]


def data(text: str = "1") -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "planner-profile-data"},
        "data": {"a.json": text},
    }


def planner() -> Object:
    volume = {"name": "curves", "configMap": {"name": "planner-profile-data"}}
    return {
        "componentType": "planner",
        "replicas": 1,
        "extraPodSpec": {"volumes": [volume], "mainContainer": {"image": "runtime:1"}},
    }
