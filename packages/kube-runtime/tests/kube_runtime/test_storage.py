"""Objects that are stored in a former version: each is rewritten, whatever interrupts that."""

from collections.abc import Callable
from typing import Any

import pytest

from kube_runtime.client.client import Client, Request, Transport
from kube_runtime.errors import Conflict, OperatorError
from kube_runtime.storage import SETTLE_SECONDS, Progress, StorageMigration
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import path_of
from simulated.clock import now, on_simulated_clock
from simulated.killing import Killed, Killing
from simulated.server import Fault, Server, Target, status

NAME = "gadgets.example.com"
DEFINITIONS = path_of(CustomResourceDefinition.KIND)
OLD, NEW = "v1alpha1", "v1beta1"
GADGETS = "/apis/example.com/{}/gadgets"


def definition(stored: str, *listed: str) -> Object:
    versions = [{"name": name, "served": True, "storage": name == stored} for name in (OLD, NEW)]
    spec = {"group": "example.com", "names": {"kind": "Gadget", "plural": "gadgets"}, "versions": versions}
    return {"metadata": {"name": NAME}, "spec": spec, "status": {"storedVersions": [*listed]}}


class Cluster(Server):
    """Knows in which version each object is stored."""

    def __init__(self, stored: str = NEW, *, objects: int = 5, page: int = 2) -> None:
        super().__init__()
        self.page_limit = page
        self.stored = stored
        (self.former,) = {OLD, NEW} - {stored}
        self.storage.create(DEFINITIONS, definition(stored, self.former, stored))
        self.versions: dict[Key, str] = {}
        for number in range(objects):
            body = {"metadata": {"namespace": f"n{number % 2}", "name": f"g{number}"}, "spec": {"a": number}}
            self.storage.create(GADGETS.format(stored), body)
            self.versions[Key(f"n{number % 2}", f"g{number}")] = self.former
        self.writes = 0

    def _object(self, request: Request, target: Target, body: Any) -> Object:
        if request.method == "PATCH" and target.collection == GADGETS.format(self.stored):
            assert ({}, "status") == (body, target.subresource)
            self.writes += self.versions.get(target.key) == self.former
            self.versions[target.key] = self.stored
        if target.subresource == "status" and target.collection == DEFINITIONS:
            assert {self.stored} == set(self.versions.values()), "all objects are written before"
        return super()._object(request, target, body)

    def listed(self) -> list[str]:
        found: list[str] = self.storage.read(DEFINITIONS, Key("", NAME))["status"]["storedVersions"]
        return found


async def migrated(
    transport: Transport, report: Callable[[Progress], None] = lambda _: None, **options: float
) -> Progress | None:
    """The result; None if nothing was due."""
    migration = StorageMigration(Client(transport, field_manager="gadgets"), **options)
    for definition in await migration.due([NAME]):
        return await migration.run(definition, report)
    return None


@pytest.mark.parametrize("stored", [OLD, NEW])
@on_simulated_clock
async def test_each_object_is_written_once_and_then_one_version_is_listed(stored: str) -> None:
    server = Cluster(stored)
    seen: list[Progress] = []
    result = await migrated(server, seen.append)
    assert result is not None
    assert (5, 5, []) == (result.total, result.done, list(result.refused))
    assert ([stored], 5) == (server.listed(), server.writes)
    assert [0, 1, 2, 3, 4, 5] == [progress.done for progress in seen]
    before = len(server.requests)
    assert await migrated(server) is None
    assert 1 == len(server.requests) - before


@on_simulated_clock
async def test_objects_are_written_at_a_bounded_rate() -> None:
    server = Cluster(objects=40, page=500)
    await migrated(server, per_second=10.0)
    assert SETTLE_SECONDS + 3.9 <= now() < SETTLE_SECONDS + 5.0


@pytest.mark.parametrize("has_effect", [False, True])
@on_simulated_clock
async def test_a_kill_at_any_request_is_harmless(has_effect: bool) -> None:
    server = Cluster()
    await migrated(server)
    for survived in range(len(server.requests)):
        killed = Cluster()
        with pytest.raises(Killed):
            await migrated(Killing(killed, survived, has_effect, counts_reads=True))
        result = await migrated(killed)
        assert (result is None) == (has_effect and survived == len(server.requests) - 1)
        assert ([NEW], 5) == (killed.listed(), killed.writes)


@on_simulated_clock
async def test_a_failure_ends_the_run_and_the_next_one_completes_it() -> None:
    server = Cluster()
    server.faults = [Fault(500, times=4, method="PATCH", collection=GADGETS.format(NEW))]
    with pytest.raises(OperatorError):
        await migrated(server)
    assert [OLD, NEW] == server.listed()
    assert await migrated(server)
    assert [NEW] == server.listed()


@on_simulated_clock
async def test_an_object_that_is_refused_keeps_the_former_version_and_stops_no_other() -> None:
    server = Cluster()
    refusal = status(422, "Invalid", "spec.a: Invalid value")
    server.refuse = lambda _, target: refusal if target.name == "g1" else None
    result = await migrated(server)
    assert result is not None
    assert (4, ["spec.a: Invalid value"]) == (result.done, [error.message for error in result.refused])
    assert ([OLD, NEW], 4) == (server.listed(), server.writes)


@on_simulated_clock
async def test_an_object_that_is_deleted_meanwhile_is_done() -> None:
    server = Cluster()

    def deleting(progress: Progress) -> None:
        if progress.done == 1:
            server.storage.delete(GADGETS.format(NEW), Key("n1", "g3"), {})
            del server.versions[Key("n1", "g3")]

    await migrated(server, deleting)
    assert ([NEW], 4) == (server.listed(), server.writes)


@on_simulated_clock
async def test_a_crd_that_changes_meanwhile_keeps_its_versions() -> None:
    server = Cluster()

    def changing(progress: Progress) -> None:
        if progress.done == progress.total:
            patch = definition(OLD, OLD, NEW)
            server.storage.merge(DEFINITIONS, Key("", NAME), patch)

    with pytest.raises(Conflict, match="changed meanwhile"):
        await migrated(server, changing)
    assert [OLD, NEW] == server.listed()


@on_simulated_clock
async def test_a_crd_that_is_absent_is_not_due() -> None:
    assert await migrated(Server()) is None
