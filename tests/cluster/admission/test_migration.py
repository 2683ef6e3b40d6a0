"""Another version is stored while graphs run: each object is rewritten in it, and no client notices.

Two replicas convert, as in an installation, so that one may be killed at any time.
"""

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from cluster.admission.conftest import Install, Installation
from cluster.admission.front import Front, front
from cluster.admission.test_conversion import LATER_ADAPTER, LATER_GRAPH, idle, later_graph, trust, webhook_at
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.served import KINDS, define, empty, is_stored_alone, serve, stored_versions
from cluster.world import ADAPTER, GRAPH, PODS, Refused, World
from dynamoctl.main import app
from kube_runtime.types.meta import Object

IDLE = 2
MIGRATED = 6  # the leader is killed before it has rewritten all of them
BETWEEN_WRITES_SECONDS = 0.4
NOTED = "nvidia.com/dgd-"
HEALTH = "--health-probe-bind-address="
MIGRATES = "--migrate-stored-objects"
ELECTION = ("--leader-elect", "--leader-election-namespace=default", "--leader-election-id=migration")
VERSIONS = {kind.version: kind for kind in (GRAPH, LATER_GRAPH)}


@dataclass
class Replicas:
    """Two operators behind one address."""

    kinds: ControlPlane
    address: Front
    installed: list[Installation]

    def store(self, version: str) -> None:
        """Have the API server store objects in that version."""
        define(self.kinds, webhook_at(self.address), version)

    def kill(self, replica: Installation) -> None:
        """A Service has no connections to a replica that is gone."""
        self.address.backends = [each.port for each in self.installed if each is not replica]
        replica.process.kill()

    def restart_without(self, flag: str) -> None:
        for replica in self.installed:
            replica.process.stop()
            replica.process.flags = tuple(it for it in replica.process.flags if it != flag)
        for replica in self.installed:
            self.start(replica)

    def start(self, replica: Installation) -> None:
        replica.process.start()
        replica.process.ready()
        replica.process.says("webhooks are ready")
        self.address.backends = [each.port for each in self.installed]

    def leader(self) -> Installation:
        (leader,) = (
            each for each in self.installed if '"message": "elected"' in each.process.log.read_text()
        )
        return leader


@pytest.fixture(scope="module")
def replicas(kinds: ControlPlane, install: Install) -> Iterator[Replicas]:
    """Two replicas, where v1alpha1 is stored and both versions are served."""
    with front() as address:
        serve(kinds, "v1alpha1", "v1beta1", conversion=webhook_at(address))
        with ExitStack() as stack:
            found = Replicas(kinds, address, [])
            for number in range(2):
                replica = install(*ELECTION, MIGRATES, url_port=address.port, registers=not number)
                found.installed.append(stack.enter_context(replica))
                address.backends.append(found.installed[-1].port)
            kinds.world("").until(lambda: trust(found.installed[0]))
            yield found
            empty(kinds)  # while they convert
        serve(kinds, "v1alpha1")


def answers_ready(replica: Installation) -> bool:
    """Whether the kubelet would have the Service send requests to it."""
    (address,) = (flag.partition("=")[2] for flag in replica.process.flags if flag.startswith(HEALTH))
    try:
        with urllib.request.urlopen(f"http://{address}/readyz", timeout=5):
            return True
    except OSError:  # refused, or a status of 400 and more
        return False


@dataclass
class Writer:
    """Writes a graph in both versions in turn, all the time."""

    world: World
    name: str
    writes: int = 0
    refused: list[str] = field(default_factory=list)

    def run(self, until: threading.Event) -> None:
        while not until.wait(BETWEEN_WRITES_SECONDS):
            for kind in VERSIONS.values():
                label = {"metadata": {"labels": {"written": str(self.writes)}}}
                try:
                    self.world.patch(kind, self.name, label)
                except Refused as error:
                    if error.code != 429:  # every client waits and asks again
                        self.refused.append(str(error))
                self.writes += 1


@contextmanager
def writing(world: World, name: str) -> Iterator[Writer]:
    end, writer = threading.Event(), Writer(world, name)
    thread = threading.Thread(target=writer.run, args=(end,))
    thread.start()
    try:
        yield writer
    finally:
        end.set()
        thread.join()


def stored_anywhere(kinds: ControlPlane) -> set[tuple[str, ...]]:
    return {tuple(stored_versions(kinds.world(""), kind)) for kind in KINDS}


def graphs_of(world: World) -> dict[str, Object]:
    """Each graph but the one that is written, without its resource version and what a conversion notes.

    Of managed fields, the managers.
    """
    found = {}
    for graph in world.list(GRAPH):
        metadata = {**graph["metadata"]}
        if metadata["name"] == "busy":
            continue  # a write that a killed process was answering leaves it without managed fields
        metadata["managedFields"] = sorted(
            (entry["manager"], entry["operation"], entry.get("subresource", ""))
            for entry in metadata["managedFields"]
        )
        noted = metadata.get("annotations", {})
        metadata["annotations"] = {key: text for key, text in noted.items() if not key.startswith(NOTED)}
        del metadata["resourceVersion"]
        found[metadata["name"]] = {**graph, "metadata": metadata}
    return found


def pods_of(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in world.list(PODS)}


def populate(world: World, count: int) -> None:
    world.create(LATER_GRAPH, later_graph("chat", replicas=2, scalingAdapter={}))
    world.create(GRAPH, idle("busy"))
    for number in range(count):
        world.create(GRAPH, idle(f"g{number}"))
    for name in ("chat", *(f"g{number}" for number in range(count))):
        world.eventually(GRAPH, name, is_ready)


def test_objects_are_migrated_there_and_back_while_clients_write(
    replicas: Replicas, kinds: ControlPlane, world: World
) -> None:
    populate(world, MIGRATED)
    before, pods = graphs_of(world), pods_of(world)
    assert len(pods) >= 3
    with writing(world, "busy") as writer:
        for version in ("v1beta1", "v1alpha1"):
            replicas.store(version)
            if version == "v1beta1":
                leader = replicas.leader()
                leader.process.says("migrating stored objects")
                replicas.kill(leader)  # with most objects still to be written
                replicas.start(leader)
            world.until(
                lambda version=version: is_stored_alone(kinds, version),  # type: ignore[misc]
                what=lambda: str(stored_anywhere(kinds)),
            )
    # The one that a killed process was answering, if there was one.
    assert len([error for error in writer.refused if "EOF" in error or "reset" in error]) <= 1
    assert [] == [error for error in writer.refused if "EOF" not in error and "reset" not in error]
    assert writer.writes > MIGRATED
    assert before == graphs_of(world)
    assert pods == pods_of(world)


def test_without_that_flag_replicas_start_between_the_versions_and_a_command_migrates(
    replicas: Replicas, kinds: ControlPlane, world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    replicas.restart_without(MIGRATES)
    empty(kinds)
    populate(world, IDLE)
    replicas.store("v1beta1")
    world.until(lambda: world.list(LATER_GRAPH))
    world.create(LATER_GRAPH, later_graph("new", scalingAdapter={}))
    assert {("v1alpha1", "v1beta1")} == stored_anywhere(kinds)

    # No replica answers, and a part of the objects is stored in each version.
    first, second = replicas.installed
    for replica in (first, second):
        replica.process.kill()
    replicas.address.backends = []
    first.process.start()
    world.until(lambda: answers_ready(first))
    replicas.address.backends = [first.port]  # as it is ready for a kubelet
    first.process.ready()
    world.eventually(LATER_GRAPH, "new", is_ready)
    world.eventually(LATER_ADAPTER, "new-decode")
    replicas.start(second)

    assert 0 == app()(["install", "migrate", "--rate=200", f"--kubeconfig={kinds.kubeconfig}"])
    assert f"dynamographdeployments.nvidia.com: {IDLE + 3} of {IDLE + 3} objects" in capsys.readouterr().out
    assert {("v1beta1",)} == stored_anywhere(kinds)

    # What was migrated is read and written while no replica answers.
    for replica in replicas.installed:
        replica.process.kill()
    assert IDLE + 3 == len(world.list(LATER_GRAPH))
    with pytest.raises(Refused, match="conversion webhook"):
        world.patch(ADAPTER, "new-decode", {"metadata": {"labels": {"a": "a"}}})
    # No graph, which admission reviews, and none of the others: the API server compares managed fields in the
    # version of their managers.
    world.patch(LATER_ADAPTER, "new-decode", {"metadata": {"labels": {"a": "b"}}})
    where = (f"--namespace={world.namespace}", f"--kubeconfig={kinds.kubeconfig}")
    app()(["status", "chat", *where])
    assert "chat" in capsys.readouterr().out
    for replica in replicas.installed:
        replicas.start(replica)
    assert "b" == world.read(ADAPTER, "new-decode")["metadata"]["labels"]["a"]
