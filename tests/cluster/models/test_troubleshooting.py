"""Each symptom of the guide's troubleshooting, produced on a real API server: the status names its cause."""

import pytest

from cluster.graph.graphs import service
from cluster.models.test_guide import hosts, said
from cluster.world import EVENTS, GRAPH, MODEL, PODS, World
from kube_runtime.types.meta import Object
from simulated.lora_fleet import Fleet
from simulated.lora_worker import Trouble

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

BASE = "meta-llama/Llama-3.3-70B-Instruct"


def graph(replicas: int = 2, base: str = BASE) -> Object:
    one = service("worker", replicas=replicas, modelRef={"name": base})
    return {"metadata": {"name": "g"}, "spec": {"services": {"Worker": one}}}


def lora(name: str = "my-lora", base: str = BASE, **spec: object) -> Object:
    source = {"uri": "s3://my-bucket/my-lora"}
    fixed = {"modelName": "my-custom-lora", "baseModelName": base, "modelType": "lora"}
    return {"metadata": {"name": name}, "spec": {**fixed, "source": source, **spec}}


def ready(world: World, name: str = "my-lora") -> tuple[str, str]:
    found = [each for each in said(world, name).get("conditions", []) if each["type"] == "EndpointsReady"]
    return (found[0]["reason"], found[0]["message"]) if found else ("", "")


def until(world: World, reason: str, text: str, name: str = "my-lora") -> None:
    world.until(
        lambda: ready(world, name)[0] == reason and text in ready(world, name)[1],
        what=lambda: f"{ready(world, name)} {said(world, name)}",
    )


def served(world: World) -> list[str]:
    """The addresses of the pods of the graph, once there are as many as the model counts."""
    world.create(GRAPH, graph())
    world.create(MODEL, lora("scout", modelType="base", modelName="scout"))
    world.until(lambda: said(world, "scout").get("readyPods") == 2)
    return hosts(said(world, "scout"))


def test_no_endpoints(world: World) -> None:
    world.create(MODEL, lora())
    nothing = f"No endpoint slices found for base model {BASE}"
    until(world, "NoEndpoints", f"{nothing}; no component in this namespace has a modelRef")
    world.create(GRAPH, graph(base="meta-llama/Llama-3.3-70B"))
    until(world, "NoEndpoints", "has that modelRef.name (found: meta-llama/Llama-3.3-70B")
    services = {"Worker": {"modelRef": {"name": BASE}, "replicas": 0}}
    world.patch(GRAPH, "g", {"spec": {"services": services}})
    until(world, "NoEndpoints", "its components have no pods")
    world.patch(GRAPH, "g", {"spec": {"services": {"Worker": {"replicas": 1}}}})
    until(world, "AllEndpointsReady", "All 1 endpoint(s) are ready")


@pytest.mark.parametrize(
    ("trouble", "text"),
    [
        (Trouble.BROKEN, "2 of them: status 500: no"),
        (Trouble.NO_ROUTE, "status 404; check that this worker has DYN_LORA_ENABLED=true and"),
        (Trouble.HANGS, "no answer within 3 seconds"),
    ],
    ids=str,
)
def test_a_load_that_fails(world: World, fleet: Fleet, trouble: Trouble, text: str) -> None:
    for each in served(world):
        fleet.workers[each].trouble = trouble
    world.create(MODEL, lora())
    until(world, "NoReadyEndpoints", text)
    assert (0, 2) == tuple(said(world)[each] for each in ("readyEndpoints", "totalEndpoints"))
    world.until(lambda: "PartialEndpointFailure" in {e["reason"] for e in world.list(EVENTS)})
    if trouble is Trouble.HANGS:
        world.delete(MODEL, "my-lora")
        world.gone(MODEL, "my-lora")


def test_one_pod_that_stays_not_ready_while_the_other_serves(world: World, fleet: Fleet) -> None:
    good, bad = served(world)
    fleet.workers[bad].trouble = Trouble.ENGINE
    world.create(MODEL, lora())
    until(world, "NotReady", "Found 1 ready endpoint(s) out of 2 total; 1 of them: download failed")
    (end,) = [each for each in said(world)["endpoints"] if not each["ready"]]
    assert ("download failed", bad) == (end["message"], hosts({"endpoints": [end]})[0])
    fleet.workers[bad].trouble = Trouble.NONE
    until(world, "AllEndpointsReady", "All 2 endpoint(s) are ready")
    assert ["POST /v1/loras"] == fleet.workers[good].asked, "it was not loaded again"


def test_a_pod_that_ran_out_of_memory(world: World, fleet: Fleet) -> None:
    served(world)
    world.create(MODEL, lora())
    until(world, "AllEndpointsReady", "All 2")
    pod = world.list(PODS)[0]
    name = pod["metadata"]["name"]
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
    waits = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}}
    (container,) = pod["status"]["containerStatuses"]
    crashed = {**container, "ready": False, "restartCount": 3, "state": waits, "lastState": ended}
    conditions = [
        {**each, **({"status": "False"} if each["type"] in ("Ready", "ContainersReady") else {})}
        for each in pod["status"]["conditions"]
    ]
    status = {"containerStatuses": [crashed], "conditions": conditions}
    world.patch(PODS, name, {"status": status}, "status")
    until(world, "NotReady", "1 of them: waiting for pod: main OOMKilled")
