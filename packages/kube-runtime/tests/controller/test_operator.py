"""An operator by one call: its manager on a simulated API server, and how it ends without credentials."""

import asyncio
from pathlib import Path
from typing import ClassVar

import pytest

import kube_runtime.controller.operator as kube
from kube_runtime.controller.controller import Reconciler
from kube_runtime.types.kinds import Lease
from kube_runtime.wire import path_of
from simulated.gadget import GADGETS, MAKERS, NAMESPACE, Gadget, Maker, gadget, key
from simulated.managed import managed
from simulated.server import Server

LEASE = kube.Key(NAMESPACE, "makers")


class MakerReconciler(Reconciler):
    """Applies one gadget for each maker."""

    reconciles: ClassVar[type[kube.Resource]] = Maker
    owns: ClassVar[tuple[type[kube.Resource], ...]] = (Gadget,)

    def __init__(self, manager: kube.Manager) -> None:
        self.cache, self.applier = manager.cache, kube.Applier(manager.writer)

    async def reconcile(self, key: kube.Key) -> kube.Result:
        maker = self.cache.get(Maker, key)
        if maker is not None:
            await self.applier.apply(maker, kube.Controlled([gadget(key.name)], self.owns))
        return kube.DONE


def a_server() -> Server:
    server = Server()
    metadata = {"name": "a", "namespace": NAMESPACE}
    server.storage.create(MAKERS, Maker.KIND.manifest(metadata))
    return server


@pytest.mark.looptime
async def test_what_a_reconciler_names_is_watched_and_drift_is_reverted() -> None:
    server = a_server()
    manager = kube.build_manager(kube.Client(server, field_manager="makers"), MakerReconciler)
    async with managed(manager, settle_seconds=2):
        server.storage.merge(GADGETS, key("a"), {"spec": {"size": 7}})
        await asyncio.sleep(2)
    stored = server.storage.objects[GADGETS][key("a")]
    assert 0 == stored["spec"]["size"]
    annotations = {"kube-runtime/applied-hash", "kube-runtime/owner-generation"}
    assert annotations == set(stored["metadata"]["annotations"])


@pytest.mark.looptime
async def test_an_informer_that_is_given_selects_and_the_leader_writes() -> None:
    server = a_server()
    manager = kube.build_manager(
        kube.Client(server, field_manager="makers"),
        MakerReconciler,
        informers=[kube.Informer(Gadget, namespace="elsewhere")],
        lease=LEASE,
    )
    async with managed(manager, settle_seconds=5):
        assert list(manager.cache.list(Gadget)) == []
        assert server.storage.objects[path_of(Lease.KIND)][LEASE]["spec"]["holderIdentity"]
    assert key("a") in server.storage.objects[GADGETS]
    assert not server.storage.objects[path_of(Lease.KIND)][LEASE]["spec"]["holderIdentity"]


def test_without_credentials_an_operator_ends_with_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))
    with pytest.raises(SystemExit) as end:
        kube.run_operator("makers", MakerReconciler)
    assert 1 == end.value.code
    assert f"error: KUBECONFIG: no such file: {tmp_path}/missing\n" == capsys.readouterr().err
