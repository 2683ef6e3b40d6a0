"""A request becomes a graph whose answers, as a client times them, are within the request's targets."""

import json
from collections.abc import Iterator

import pytest

from cluster.person import dynamoctl
from cluster.requests.playing import REQUEST, state
from cluster.world import CONFIG_MAP, GRAPH, PODS, World
from e2e.cluster import FIRST, RealCluster, address, first_completion
from e2e.conftest import Report
from e2e.graphs import ADDRESS_OF_NATS, RUNTIME
from e2e.inside import Streamed, streamed
from e2e.load import CHAT, Load, completion
from kube_runtime.types.meta import Object

TTFT_SECONDS, ITL_SECONDS = 2.0, 0.2
"""The targets: far above the simulated engine's times, so that a busy machine can meet them too."""
TOKENS = 32
pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module", autouse=True)
def _nats(cluster: RealCluster) -> Iterator[None]:
    """The address of NATS for generated graphs, whose engines are simulated ones of Dynamo 0.9."""
    cluster.install(FIRST, "upgrade", more={"dynamo-operator.natsAddr": ADDRESS_OF_NATS})
    yield
    cluster.install(FIRST, "upgrade")


def a_request() -> Object:
    """A model of 70 billion parameters whose engine is simulated, by the times that the profiler predicts."""
    sla = {"isl": 200, "osl": TOKENS, "ttft": 1000 * TTFT_SECONDS, "itl": 1000 * ITL_SECONDS}
    config = {
        "sla": sla,
        "hardware": {"gpuType": "h100_sxm"},
        "engine": {"maxContextLength": 4096},
        "analytic": {"parametersBillions": 70, "mode": "aggregated", "requestsPerSecond": 6},
    }
    spec = {
        "model": "/model",
        "backend": "vllm",
        "autoApply": True,
        "useMocker": True,
        "profilingConfig": {"profilerImage": FIRST, "config": config},
        "deploymentOverrides": {"workersImage": RUNTIME},
    }
    return {"metadata": {"name": "chat"}, "spec": spec}


def predicted(world: World) -> float:
    """The shortest time between two tokens in the curves that the engine follows. Units: seconds."""
    documents = [each.get("data", {}).get("decode_raw_data.json") for each in world.list(CONFIG_MAP)]
    [curves] = filter(None, documents)
    return float(min(json.loads(curves)["z_itl"])) / 1000


def test_a_request_becomes_a_graph_that_meets_its_targets(
    cluster: RealCluster, world: World, report: Report
) -> None:
    world.create(REQUEST, a_request())
    world.eventually(REQUEST, "chat", lambda each: state(each) == "Ready", within_seconds=240)
    first_completion(cluster, world, "chat-frontend")
    at = address(world, "chat-frontend")
    found: list[Streamed] = []

    def meets() -> bool:
        body = completion("the same words " * 12, TOKENS)
        found.append(cluster.inside.submit(lambda: streamed(at, CHAT, body)).result())
        return found[-1].ttft <= TTFT_SECONDS and found[-1].itl <= ITL_SECONDS

    world.until(meets, what=lambda: str(found))
    assert found[-1].tokens >= TOKENS - 1
    least = predicted(world)
    report(
        f"{found[-1].tokens} tokens, first after {found[-1].ttft:.3f} s, {1000 * found[-1].itl:.1f} ms "
        f"between two, of which the profiler predicts {1000 * least:.1f} at least"
    )
    assert found[-1].itl >= least / 2, "the engine has the times of the curves"

    said: list[str] = []
    measured: Object = {}

    def is_told() -> bool:
        """With each value that the interval may be too short for: it ends before the first answers do."""
        done = dynamoctl(
            *("top", "dgdr/chat", f"--namespace={world.namespace}", "--output=json"),
            *("--kubeconfig", cluster.instance.kubeconfig, "--interval=3s"),
        )
        said.append(done.stdout or done.stderr)
        if done.returncode != 0:
            return False
        told = json.loads(done.stdout)
        targets = told["promised"]["targets"]
        assert told["meetsTargets"]
        assert (TTFT_SECONDS, ITL_SECONDS) == (targets["ttft"], targets["itl"])
        measured.update(told["measured"])
        return all(measured[each] for each in ("requests", "ttft", "itl", "isl", "osl"))

    with Load(cluster.inside, at, rate_per_second=2, tokens=TOKENS):
        world.until(is_told, what=lambda: said[-1])
    report(f"by dynamoctl top: {measured}")
    assert measured["itl"] >= least / 2


def test_a_request_that_measures_takes_what_the_real_runtime_was_measured_to_do(
    cluster: RealCluster, world: World, report: Report
) -> None:
    """The profiler runs in its Job and is evicted once; candidates are simulated engines of the runtime."""
    request = a_request()
    config = request["spec"]["profilingConfig"]["config"]
    config["online"] = {"useMocker": True, "candidates": 2, "secondsPerLoad": 5}
    world.create(REQUEST, request)

    def measuring() -> str:
        found = world.get(REQUEST, "chat") or {}
        return str(found.get("status", {}).get("message", ""))

    world.until(lambda: "requests per second" in measuring(), what=measuring, within_seconds=240)
    evict(cluster, world, "profile-chat")
    world.eventually(REQUEST, "chat", lambda each: state(each) == "Ready", within_seconds=420)
    data = world.eventually(CONFIG_MAP, "dgdr-measured-chat")["data"]["measurements.json"]
    found = json.loads(data)["candidates"]
    [load] = [each["loads"][-1] for each in found if not each.get("problem")][-1:]
    assert load["ttft"] <= TTFT_SECONDS
    assert load["itl"] <= ITL_SECONDS
    assert load["tokens"] == pytest.approx(TOKENS, abs=1)
    assert [each["metadata"]["name"] for each in world.list(GRAPH)] == ["chat"]
    report(f"measured: {load}")
    first_completion(cluster, world, "chat-frontend")


def evict(cluster: RealCluster, world: World, job: str) -> None:
    """Have the API server evict the running pod of a Job, as a drained node does."""
    [pod] = [
        each["metadata"]["name"]
        for each in world.list(PODS)
        if each["metadata"]["labels"].get("job-name") == job
    ]
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}}
    path = f"/api/v1/namespaces/{world.namespace}/pods/{pod}/eviction"
    cluster.kubectl("create", f"--raw={path}", "--filename=-", input=json.dumps(body))
