"""Every end that a request can come to: a definite state, and a cause that a user can act on."""

from collections.abc import Callable

import pytest

from cluster.conditions import condition
from cluster.requests.playing import BY_HAND, JOB, REQUEST, WORKER, Player, a_graph, a_request, terminated
from cluster.world import CONFIG_MAP, GRAPH, PODS, World
from kube_runtime.types.meta import Kind, Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def crashes(player: Player) -> None:
    lines = "\n".join(f"line {each}" for each in range(30))
    player.ends("Failed", terminated(2, f"{lines}\nKeyError: sla"), terminated(0))


def cannot_write(player: Player) -> None:
    player.ends("Failed", terminated(0), terminated(1, "configmaps is forbidden"))


def evicted(player: Player) -> None:
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    player.ends(
        "Failed",
        terminated(137),
        terminated(137),
        reason="Evicted",
        message="the node was low on memory",
        conditions=[{**disruption, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    )


def says_so(player: Player) -> None:
    said = "status: failed\nphase: SweepingPrefill\nmessage: no candidate meets a TTFT of 1 ms\n"
    player.writes(profiler_status_yaml=said)
    player.ends("Failed", terminated(0), terminated(1, "no config_with_planner.yaml"))


@pytest.mark.parametrize(
    ("end", "backoff_limit", "said"),
    [
        (crashes, 3, ("Container: profiler, ExitCode: 2", "line 21", "KeyError: sla")),
        (cannot_write, 3, ("Container: output-copier, ExitCode: 1", "configmaps is forbidden")),
        (evicted, 0, ("Reason: Evicted, Message: the node was low on memory",)),
        (says_so, 3, ("no candidate meets a TTFT of 1 ms",)),
    ],
)
def test_a_pod_that_fails_is_quoted_and_not_run_again(
    end: Callable[[Player], None], backoff_limit: int, said: tuple[str, ...], world: World, player: Player
) -> None:
    world.create(REQUEST, a_request(profiling={"backoffLimit": backoff_limit}))
    player.is_in("Profiling")
    end(player)
    body = player.is_in("Failed")
    found = condition(body, "Profiling")
    assert all(each in found["message"] for each in said), found["message"]
    assert "line 20" not in found["message"]
    assert found["message"] == body["status"]["message"]
    assert "ProfilingFailed" == found["reason"] == condition(body, "Succeeded")["reason"]
    assert ("SweepingPrefill" if end is says_so else None) == body["status"].get("profilingPhase")
    assert 1 == len(world.list(PODS))
    player.said("ProfilingCheckFailed")


def test_an_evicted_pod_is_replaced_and_profiling_continues(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    first = player.pod()["metadata"]["name"]
    evicted(player)
    player.is_in("Profiling")
    assert first != player.pod()["metadata"]["name"]
    player.finds(a_graph())
    player.is_in("Ready")


def test_a_graph_that_the_api_server_refuses_is_a_failure_in_its_words(world: World, player: Player) -> None:
    world.create(REQUEST, a_request(autoApply=True))
    player.finds(a_graph(W={**WORKER, "replicas": -1}))
    body = player.is_in("Failed")
    found = condition(body, "DeploymentReady")
    assert "DeploymentCreationFailed" == found["reason"]
    assert "should be greater than or equal to 0" in found["message"]
    player.said("DeploymentCreationFailed")


def test_a_graph_of_that_name_stops_the_request_before_anything_is_profiled(
    world: World, player: Player
) -> None:
    world.create(GRAPH, {"metadata": {"name": "chat"}, "spec": a_graph()["spec"]})
    world.create(REQUEST, a_request(autoApply=True))
    body = player.is_in("Failed")
    assert "was not created by this request" in condition(body, "Validation")["message"]
    assert "another name for the graph" in body["status"]["message"]
    assert [] == world.list(JOB)


TEMPLATE = {
    "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1", "resources": BY_HAND}]}
}


@pytest.mark.parametrize(
    ("kind", "name", "fields", "said"),
    [
        (JOB, "profile-chat", {"spec": {"template": TEMPLATE}}, "exists and has no controller"),
        (CONFIG_MAP, "dgdr-output-chat", {"data": {"mine": "1"}}, "is not from profiling"),
    ],
    ids=["job", "output"],
)
def test_an_object_of_others_with_a_name_of_the_request_is_left_alone(
    kind: Kind, name: str, fields: Object, said: str, world: World, player: Player
) -> None:
    theirs = world.create(kind, {"metadata": {"name": name}, **fields})
    world.create(REQUEST, a_request())
    found = condition(player.is_in("Failed"), "Profiling")
    assert "NameConflict" == found["reason"]
    assert said in found["message"]
    now = world.eventually(kind, name)
    assert theirs["metadata"]["uid"] == now["metadata"]["uid"]
    assert theirs.get("data") == now.get("data")


def test_what_the_spec_names_and_is_not_there_is_named(world: World, player: Player) -> None:
    profiling = {
        "configMapRef": {"name": "base"},
        "outputPVC": "out",
        "config": {"deployment": {"modelCache": {"pvcName": "cache"}}},
    }
    world.create(REQUEST, a_request(profiling=profiling))
    body = player.is_in("Failed")
    wanted = [
        f"ConfigMap base not found in namespace {world.namespace}",
        f"output PVC out not found in namespace {world.namespace}",
        f"model cache PVC cache not found in namespace {world.namespace}",
    ]
    assert wanted == condition(body, "Validation")["message"].split("\n")
    assert "observedGeneration" not in body["status"]
    player.said("ValidationFailed")


def test_a_job_that_was_deleted_while_it_ran_is_a_failure(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    player.is_in("Profiling")
    world.delete(JOB, "profile-chat")
    found = condition(player.is_in("Failed"), "Profiling")
    assert "profiling job profile-chat was deleted" in found["message"]


def test_a_graph_that_degrades_takes_the_request_along_and_back(world: World, player: Player) -> None:
    player.is_served(autoApply=True)
    image = {"extraPodSpec": {"nodeSelector": {"no": "such-node"}}}
    world.patch(GRAPH, "chat", {"spec": {"services": {"W": image}}})
    body = player.is_in("Deploying")
    assert "DeploymentDegraded" == condition(body, "DeploymentReady")["reason"]
    world.patch(GRAPH, "chat", {"spec": {"services": {"W": {"extraPodSpec": {"nodeSelector": None}}}}})
    player.is_in("Ready")
    player.said("DeploymentReady", 2)


def test_a_pod_that_cannot_start_is_named_while_profiling_waits(world: World, player: Player) -> None:
    world.create(REQUEST, a_request(profiling={"annotations": {"fake-kubelet": "no-image"}, "resources": {}}))
    world.eventually(
        REQUEST, "chat", lambda each: "ImagePullBackOff" in each.get("status", {}).get("message", "")
    )
    body = player.is_in("Profiling")
    assert "container profiler ImagePullBackOff" in condition(body, "Profiling")["message"]


def test_deleting_a_request_takes_its_job_and_leaves_its_graph(world: World, player: Player) -> None:
    player.is_served(autoApply=True)
    world.delete(REQUEST, "chat")
    world.gone(REQUEST, "chat")
    world.gone(JOB, "profile-chat")
    assert world.get(GRAPH, "chat") is not None
    world.create(REQUEST, a_request())
    player.is_in("Profiling")  # it does not wait for pods of that graph
