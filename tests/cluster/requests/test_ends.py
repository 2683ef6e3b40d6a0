"""Every end that a request can come to: a definite state, and a cause that a user can act on."""

import pytest

from cluster.conditions import condition
from cluster.requests.playing import (
    BY_HAND,
    CONFIG_MAP,
    GRAPH,
    JOB,
    REQUEST,
    WORKER,
    Player,
    a_graph,
    a_request,
    documents,
    terminated,
)
from cluster.world import PODS, World

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_what_profiling_finds_is_in_the_status_and_is_not_created(world: World, player: Player) -> None:
    body = player.is_served()
    assert "generated" == body["status"]["generatedDeployment"]["metadata"]["name"]
    assert "configmap/dgdr-output-chat" == body["status"]["profilingResults"]
    assert "True" == condition(body, "Profiling")["status"]
    assert "True" == condition(body, "Succeeded")["status"]
    assert [] == world.list(GRAPH)


def test_a_graph_is_created_under_the_name_of_the_request_and_becomes_ready(
    world: World, player: Player
) -> None:
    body = player.is_served(autoApply=True)
    assert {
        "name": "chat",
        "namespace": world.namespace,
        "state": "successful",
        "created": True,
    } == body["status"]["deployment"]
    graph = world.get(GRAPH, "chat")
    assert graph is not None
    assert "ownerReferences" not in graph["metadata"]
    player.said("DeploymentReady")


def test_a_profiler_that_crashes_is_quoted_and_not_run_again(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    lines = "\n".join(f"line {each}" for each in range(30))
    player.ends("Failed", terminated(2, f"{lines}\nKeyError: sla"), terminated(0))
    body = player.is_in("Failed")
    found = condition(body, "Profiling")
    assert "ProfilingFailed" == found["reason"]
    assert "Container: profiler, ExitCode: 2" in found["message"]
    assert found["message"].endswith("KeyError: sla")
    assert "line 21" in found["message"]
    assert "line 20" not in found["message"]
    assert 1 == len(world.list(PODS))
    assert found["message"] == body["status"]["message"]
    assert "ProfilingFailed" == condition(body, "Succeeded")["reason"]
    player.said("ProfilingCheckFailed")


def test_a_copier_that_cannot_write_is_named_and_not_the_profiler(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    player.ends("Failed", terminated(0), terminated(1, "configmaps is forbidden"))
    found = condition(player.is_in("Failed"), "Profiling")
    assert "Container: output-copier, ExitCode: 1" in found["message"]
    assert "configmaps is forbidden" in found["message"]


def test_a_pod_that_is_evicted_is_replaced_and_profiling_goes_on(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    first = player.pod()["metadata"]["name"]
    evicted(player)
    player.is_in("Profiling")
    assert first != player.pod()["metadata"]["name"]
    player.finds(a_graph())
    player.is_in("Ready")


def test_one_that_is_evicted_again_and_again_ends_and_the_eviction_is_named(
    world: World, player: Player
) -> None:
    world.create(REQUEST, a_request(profiling={"backoffLimit": 0}))
    evicted(player)
    found = condition(player.is_in("Failed"), "Profiling")
    assert "Reason: Evicted, Message: the node was low on memory" in found["message"]


def test_a_profiler_that_ends_well_and_says_that_it_failed_is_quoted(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    player.is_in("Profiling")
    said = "status: failed\nphase: SweepingPrefill\nmessage: no candidate meets a TTFT of 1 ms\n"
    player.writes(profiler_status_yaml=said)
    player.ends("Failed", terminated(0), terminated(1, "no config_with_planner.yaml"))
    body = player.is_in("Failed")
    assert "no candidate meets a TTFT of 1 ms" in body["status"]["message"]
    assert "SweepingPrefill" == body["status"]["profilingPhase"]


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
    assert "deploymentOverrides.name" in body["status"]["message"]
    assert [] == world.list(JOB)


def test_a_name_that_is_taken_while_profiling_is_left_to_who_has_it(world: World, player: Player) -> None:
    world.create(REQUEST, a_request(autoApply=True))
    player.is_in("Profiling")
    theirs = world.create(GRAPH, {"metadata": {"name": "chat"}, "spec": a_graph()["spec"]})
    player.finds(a_graph())
    body = player.is_in("Failed")
    assert "NameConflict" == condition(body, "DeploymentReady")["reason"]
    now = world.get(GRAPH, "chat")
    assert now is not None
    assert theirs["metadata"]["uid"] == now["metadata"]["uid"]
    assert "dgdr.nvidia.com/name" not in now["metadata"].get("labels", {})


def test_a_job_of_that_name_is_left_alone(world: World, player: Player) -> None:
    container = {"name": "c", "image": "x:1", "resources": BY_HAND}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    theirs = world.create(JOB, {"metadata": {"name": "profile-chat"}, "spec": {"template": template}})
    world.create(REQUEST, a_request())
    found = condition(player.is_in("Failed"), "Profiling")
    assert "NameConflict" == found["reason"]
    assert "Job profile-chat exists and has no controller" in found["message"]
    now = world.get(JOB, "profile-chat")
    assert now is not None
    assert theirs["metadata"]["uid"] == now["metadata"]["uid"]


def test_a_config_map_in_the_place_of_the_output_is_left_alone(world: World, player: Player) -> None:
    world.create(CONFIG_MAP, {"metadata": {"name": "dgdr-output-chat"}, "data": {"mine": "1"}})
    world.create(REQUEST, a_request())
    found = condition(player.is_in("Failed"), "Profiling")
    assert "NameConflict" == found["reason"]
    now = world.get(CONFIG_MAP, "dgdr-output-chat")
    assert now is not None
    assert {"mine": "1"} == now["data"]


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


def test_a_key_that_the_base_config_map_lacks_is_named(world: World, player: Player) -> None:
    world.create(CONFIG_MAP, {"metadata": {"name": "base"}, "data": {"mine.yaml": ""}})
    world.create(REQUEST, a_request(profiling={"configMapRef": {"name": "base"}}))
    body = player.is_in("Failed")
    wanted = "key disagg.yaml not found in ConfigMap base"
    assert wanted == condition(body, "Validation")["message"]


def test_a_job_that_was_deleted_while_it_ran_is_a_failure(world: World, player: Player) -> None:
    world.create(REQUEST, a_request())
    player.is_in("Profiling")
    world.delete(JOB, "profile-chat")
    found = condition(player.is_in("Failed"), "Profiling")
    assert "profiling job profile-chat was deleted" in found["message"]


def test_results_count_although_their_job_is_gone_already(world: World, player: Player) -> None:
    created = world.create(REQUEST, a_request())
    player.is_in("Profiling")
    player.writes(config_with_planner_yaml=documents(a_graph()))
    owner = {"apiVersion": REQUEST.api_version, "kind": REQUEST.name, "name": "chat"}
    references = [{**owner, "uid": created["metadata"]["uid"]}]
    world.patch(CONFIG_MAP, "dgdr-output-chat", {"metadata": {"ownerReferences": references}})
    world.delete(JOB, "profile-chat")
    player.is_in("Ready")


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
        REQUEST,
        "chat",
        lambda each: "ImagePullBackOff" in each.get("status", {}).get("message", ""),
    )
    body = player.is_in("Profiling")
    assert "container profiler ImagePullBackOff" in condition(body, "Profiling")["message"]


def test_deleting_a_request_takes_its_job_and_leaves_its_graph(world: World, player: Player) -> None:
    player.is_served(autoApply=True)
    world.delete(REQUEST, "chat")
    world.gone(REQUEST, "chat")
    world.gone(JOB, "profile-chat")
    assert world.get(GRAPH, "chat") is not None


def evicted(player: Player) -> None:
    """Have the kubelet evict the profiling pod."""
    disruption = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    player.ends(
        "Failed",
        terminated(137),
        terminated(137),
        reason="Evicted",
        message="the node was low on memory",
        conditions=[{**disruption, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    )
