"""The manager and namespaces that another operator owns for a while, on a simulated clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.leases import Election, NamespaceExcluded
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Key
from simulated.gadget import GADGETS, Gadget, OfGadgets
from simulated.managed import managed
from simulated.server import Server

pytestmark = pytest.mark.looptime


@dataclass
class Copier(OfGadgets):
    """Copies the size of a gadget into its label, or that in the `target`, after a second of thinking."""

    operator: "Operator"

    async def reconcile(self, key: Key) -> Result:
        found = self.operator.cache.get(Gadget, key)
        if found is None:
            return DONE
        self.operator.reconciled.append(key.namespace)
        await asyncio.sleep(1)
        patch = {"metadata": {"labels": {"size": str(found.spec.size)}}}
        await self.operator.writer.merge_patch(Gadget, Key(self.operator.target or key.namespace, "g"), patch)
        return Result(5)


@dataclass
class Operator:
    """One process, and the namespaces that it leaves to others."""

    server: Server
    elects: bool = False
    excluded: set[str] = field(default_factory=set)
    target: str = ""
    reconciled: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        client, self.cache, self.metrics = Client(self.server), Cache(), RuntimeMetrics()
        self.writer = Writer(client, self.cache, excluded=self.excluded)
        lease = Key("kube-system", "lease")
        self.manager = Manager(
            client,
            self.cache,
            metrics=self.metrics,
            events=EventWriter(client, instance="a", metrics=self.metrics),
            election=Election(client, lease, identity="a") if self.elects else None,
            excluded=self.excluded,
        )
        self.manager.inform(Informer(Gadget))
        self.runner = self.manager.control(Copier(self))

    def ends(self, namespace: str) -> None:
        self.excluded.discard(namespace)
        self.manager.wake_namespace(namespace)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with managed(self.manager, settle_seconds=0.5):
            yield

    def label(self, namespace: str) -> str | None:
        labels = self.server.storage.read(GADGETS, Key(namespace, "g"))["metadata"].get("labels", {})
        found: str | None = labels.get("size")
        return found


def a_server() -> Server:
    server = Server()
    for namespace in ("ours", "theirs"):
        metadata = {"namespace": namespace, "name": "g"}
        server.storage.create(GADGETS, {"metadata": metadata, "spec": {"size": 1}})
    return server


async def test_nothing_is_done_in_a_namespace_of_another_operator_until_its_exclusion_ends() -> None:
    server = a_server()
    operator = Operator(server, excluded={"theirs"})
    async with operator.running():
        await asyncio.sleep(20)
        assert {"ours"} == set(operator.reconciled)
        assert ("1", None) == (operator.label("ours"), operator.label("theirs"))
        server.storage.merge(GADGETS, Key("theirs", "g"), {"spec": {"size": 7}})
        await asyncio.sleep(5)
        operator.ends("theirs")
        await asyncio.sleep(2)
        assert "7" == operator.label("theirs"), "without another change"


async def test_a_key_that_was_queued_before_is_skipped_as_well() -> None:
    operator = Operator(a_server())
    async with operator.running():
        await asyncio.sleep(2)
        operator.excluded.add("theirs")
        operator.reconciled.clear()
        await asyncio.sleep(20)
        assert {"ours"} == set(operator.reconciled)


async def test_a_running_reconcile_writes_nothing_more_and_does_not_fail() -> None:
    operator = Operator(a_server())
    async with operator.running():
        operator.excluded.add("theirs")
        await asyncio.sleep(2)
        assert ("1", None) == (operator.label("ours"), operator.label("theirs"))
        labels = {"resource_type": "Gadget", "namespace": "theirs", "result": "error"}
        assert not operator.metrics.registry.get_sample_value("kube_runtime_reconcile_total", labels)


async def test_an_unreadable_object_is_reconciled_again_as_well() -> None:
    server = a_server()
    operator = Operator(server, excluded={"theirs"})
    async with operator.running():
        server.storage.merge(GADGETS, Key("theirs", "g"), {"spec": {"size": "large"}})
        await asyncio.sleep(5)
        operator.ends("theirs")
        await asyncio.sleep(0.5)
        assert "theirs" in operator.reconciled


async def test_a_standby_collects_no_keys_when_a_namespace_comes_back() -> None:
    operator = Operator(a_server(), elects=True, excluded={"theirs"})
    metadata = {"namespace": "kube-system", "name": "lease"}
    held = {"holderIdentity": "another", "leaseDurationSeconds": 600}
    leases = "/apis/coordination.k8s.io/v1/leases"
    operator.server.storage.create(leases, {"metadata": metadata, "spec": held})
    async with operator.running():
        operator.ends("theirs")
        assert operator.runner.is_settled


async def test_a_write_into_a_namespace_of_another_operator_is_refused_unsent_and_retried() -> None:
    operator = Operator(a_server(), excluded={"theirs"}, target="theirs")
    with pytest.raises(NamespaceExcluded):
        await operator.writer.merge_patch(Gadget, Key("theirs", "g"), {"spec": {"size": 2}})
    assert [] == operator.server.requests
    async with operator.running():
        await asyncio.sleep(20)
    assert operator.reconciled.count("ours") > 1
