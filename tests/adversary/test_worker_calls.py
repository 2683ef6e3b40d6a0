"""What the workers of a tenant do to the calls of others: hang, answer without end, be somewhere else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dynamo_operator.models.calls import Caller, KnownEndpoints, ModelCalls
from dynamo_operator.models.plan import Call, Ending, Endpoint, LoraVerb, Reply, Work
from dynamo_operator.process.operator import lora_disabled_reason
from dynamo_operator.settings import ModelSettings, Settings
from kube_runtime.client.connect import is_own_cluster
from kube_runtime.types.meta import Key
from simulated.clock import on_simulated_clock
from simulated.models import Cluster

LIMIT_SECONDS = 120.0
LOAD = Call(LoraVerb.LOAD, "adapter", "s3://weights/adapter")


class Workers:
    """Workers at any address; those of `10.66.` never answer."""

    def __init__(self) -> None:
        self.hanging = self.most_hanging = 0

    async def call(self, address: str, call: Call, timeout_seconds: float | None = None) -> Reply:
        assert call == LOAD
        if not address.startswith("http://10.66."):
            await asyncio.sleep(0.1)
            return Reply(Ending.DONE)
        self.hanging += 1
        self.most_hanging = max(self.hanging, self.most_hanging)
        await asyncio.sleep(timeout_seconds or LIMIT_SECONDS)
        self.hanging -= 1
        return Reply(Ending.FAILED, "no answer within 120 seconds")


@asynccontextmanager
async def calls_to(workers: Workers) -> AsyncIterator[ModelCalls]:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Caller]:
        yield workers.call

    calls = ModelCalls(connect)
    running = asyncio.create_task(calls.run())
    yield calls
    running.cancel()
    await asyncio.wait([running])


def begin(calls: ModelCalls, namespace: str, name: str, pods: int, network: str) -> KnownEndpoints:
    key = Key(namespace, name)
    known = calls.state_of(key, f"{namespace}/{name}")
    ends = (
        Endpoint(f"http://{network}.{pod}:9090", f"{name}-{pod}", is_callable=True) for pod in range(pods)
    )
    calls.start(key, known, [Work(each, (LOAD,)) for each in ends])
    return known


@on_simulated_clock
async def test_hanging_workers_of_one_tenant_delay_no_other() -> None:
    """60 models over 20 pods that hang, as in the review: others waited 342 s."""
    workers = Workers()
    async with calls_to(workers) as calls:
        for number in range(60):
            begin(calls, "mallory", f"m-{number}", 20, "10.66.0")
        await asyncio.sleep(1)
        started = asyncio.get_running_loop().time()
        known = begin(calls, "alice", "support", 3, "10.8.0")
        await asyncio.wait([run.task for run in known.runs.values()])
        assert 1 > asyncio.get_running_loop().time() - started
        assert 100 == workers.most_hanging


@on_simulated_clock
async def test_many_namespaces_of_one_tenant_leave_places_to_others() -> None:
    workers = Workers()
    async with calls_to(workers) as calls:
        for number in range(60):
            begin(calls, f"mallory-{number}", "m", 20, "10.66.0")
        await asyncio.sleep(1)
        assert 400 > workers.most_hanging
        known = begin(calls, "alice", "support", 1, "10.8.0")
        await asyncio.sleep(1)
        assert all(run.task.done() for run in known.runs.values())


@on_simulated_clock
async def test_outside_the_cluster_no_address_of_a_pod_is_called() -> None:
    """On a laptop, 10.x addresses of simulated pods belong to other machines."""
    cluster = Cluster()
    cluster.silence = "the operator runs outside the cluster and calls no workers"
    cluster.has_pods(2)
    cluster.has_model()
    async with cluster.operator():
        await asyncio.sleep(30)
        assert 0 == cluster.asked()
        status, reason, message = cluster.condition()
        assert ("False", "CallsDisabled") == (status, reason)
        assert cluster.silence in message
        writes = cluster.writes()
        await asyncio.sleep(600)
        assert writes == cluster.writes()
        cluster.delete()
        await cluster.until(lambda: cluster.model() is None)
    assert 0 == cluster.asked()


def test_only_the_account_of_a_pod_says_that_the_cluster_is_our_own(tmp_path: Path) -> None:
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text("x")
    pod = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    assert is_own_cluster(None, pod, tmp_path)
    assert not is_own_cluster(Path("kubeconfig"), pod, tmp_path)
    assert not is_own_cluster(None, {**pod, "KUBECONFIG": "/elsewhere"}, tmp_path)
    assert not is_own_cluster(None, {}, tmp_path)


@pytest.mark.parametrize(
    ("calls", "is_dialled", "is_silent"),
    [("auto", False, True), ("auto", True, False), ("always", False, False), ("never", True, True)],
)
def test_calls_are_made_where_the_addresses_are_those_of_pods(
    calls: str, *, is_dialled: bool, is_silent: bool
) -> None:
    settings = Settings(models=ModelSettings(calls=calls), kubeconfig="/a/file")  # type: ignore[arg-type]
    assert is_silent == bool(lora_disabled_reason(settings, is_dialled=is_dialled))
