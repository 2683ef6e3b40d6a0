"""From a request to a ready graph, without a GPU: the analytic profiler runs in the operator's Job."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.conditions import condition
from cluster.profiler.kubelet import BY_HAND, Kubelet
from cluster.requests.playing import REQUEST, Player
from cluster.world import CONFIG_MAP, GRAPH, PODS, World
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

EXAMPLES = Path(__file__).parents[3] / "examples"


def a_request(name: str = "chat", *, profiling: Object | None = None, **spec: Any) -> Object:
    config = {"profilerImage": "profiler:1", "resources": BY_HAND, **(profiling or {})}
    body = {"model": "Qwen/Qwen3-8B", "backend": "vllm", "autoApply": True, **spec}
    return {"metadata": {"name": name}, "spec": {**body, "profilingConfig": config}}


def test_the_example_becomes_a_ready_graph_of_simulated_engines(world: World, kubelet: Kubelet) -> None:
    request = yaml.safe_load((EXAMPLES / "v1alpha1/request-analytic.yaml").read_text(encoding="utf-8"))
    name = request["metadata"]["name"]
    request["spec"]["profilingConfig"]["resources"] = BY_HAND
    world.create(REQUEST, request)
    assert {"profiler": 0, "output-copier": 0} == kubelet.runs(f"profile-{name}")
    body = Player(world).is_in("Ready", name)
    assert "successful" == body["status"]["deployment"]["state"]
    assert "Done" == body["status"]["profilingPhase"]
    assert "True" == condition(body, "Succeeded")["status"]
    graph = world.eventually(GRAPH, name)
    assert "successful" == graph["status"]["state"]
    deployments = world.list(Deployment.KIND)
    assert {"frontend", "prefill", "decode"} == {
        each["metadata"]["name"].removeprefix(f"{name}-") for each in deployments
    }
    assert "nvidia.com/gpu" not in yaml.safe_dump(deployments)
    (curves,) = graph["spec"]["services"]["Decode"]["extraPodSpec"]["volumes"]
    data = world.eventually(CONFIG_MAP, curves["configMap"]["name"])["data"]
    assert {"decode_raw_data.json", "prefill_raw_data.json"} == set(data)


@pytest.mark.parametrize(
    ("config", "kill_in", "code", "cause"),
    [
        (
            *({"sla": {"ttft": 1}}, "", 1),
            "sla.ttft of 1 ms cannot be met: the fastest engine, 8 x h100_sxm (tp8), needs",
        ),
        (
            *({"analytic": {"secondsPerPhase": 600}}, "Initializing: ", 137),
            "Container: profiler, ExitCode: 137, Reason: Error, Message: Initializing: ",
        ),
    ],
    ids=["no graph", "killed"],
)
def test_a_profiler_that_fails_or_is_killed_fails_the_request_with_the_cause(
    config: Object, kill_in: str, code: int, cause: str, world: World, kubelet: Kubelet
) -> None:
    world.create(REQUEST, a_request(profiling={"config": config}))
    assert {"profiler": code, "output-copier": 0} == kubelet.runs("profile-chat", kill_in=kill_in)
    body = Player(world).is_in("Failed")
    assert "ProfilingFailed" == condition(body, "Profiling")["reason"]
    assert 1 == condition(body, "Profiling")["message"].count(cause)
    assert 1 == body["status"]["message"].count(cause)
    assert [] == world.list(GRAPH)
    assert 1 == len(world.list(PODS)), "what was killed for its memory would be killed again"


def test_a_request_shows_how_far_its_profiler_is(world: World, kubelet: Kubelet) -> None:
    config = {"analytic": {"secondsPerPhase": 5}}  # a busy machine shows some of them
    world.create(REQUEST, a_request(profiling={"config": config}, autoApply=False))
    since = world.version()
    kubelet.runs("profile-chat")
    Player(world).is_in("Ready")
    phases = [each["object"]["status"].get("profilingPhase") for each in world.changes(REQUEST, since=since)]
    said = list(dict.fromkeys(each for each in phases if each))
    assert "Done" == said[-1]
    order = ["Initializing", "SweepingPrefill", "SweepingDecode", "SelectingConfig"]
    order += ["BuildingCurves", "GeneratingDGD", "Done"]
    assert said == [each for each in order if each in said]
    assert len(said) >= 3, phases


def test_gpus_are_those_of_the_nodes_when_the_request_says_so(world: World, kubelet: Kubelet) -> None:
    world.create(REQUEST, a_request(enableGpuDiscovery=True, autoApply=False))
    assert 0 == kubelet.runs("profile-chat")["profiler"], kubelet.log("profiler")
    Player(world).is_in("Ready")
    assert " on h100_sxm; " in kubelet.log("profiler")
