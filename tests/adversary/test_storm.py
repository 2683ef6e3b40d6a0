"""A tenant stores objects that are large and expensive, with the webhooks off, while another one works.

In full with `DYNAMO_TEST_LONG=1` (`make long`).
"""

import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OperatorProcess
from cluster.world import Refused, World
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.controlplane.ports import free_ports
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.stall import MESSAGE as STALL
from dynamo_operator.kube.types.coordination import Lease

pytestmark = pytest.mark.cluster

GRAPH = DynamoGraphDeployment.KIND
IS_LONG = os.environ.get("DYNAMO_TEST_LONG") == "1"
STORED = 200 if IS_LONG else 6
LEASE = "dynamo.nvidia.com"
MIB = 1024 * 1024
BUSY_SECONDS = 3.0
"""Within a second on a quiet machine; `make test` also runs on busy ones."""
SLACK_SECONDS = 30
"""Twice of next to nothing is next to nothing, and other work runs beside a suite."""


def envs(count: int) -> list[Object]:
    return [{"name": f"V{number}", "value": "x"} for number in range(count)]


def hostile() -> dict[str, Object]:
    """What a tenant may store: over the size limit, and just below it."""
    frontend = service("frontend")
    long_script = {"mainContainer": {"image": "i", "args": ["a/" * 110_000]}}
    many_volumes = {
        "volumes": [{"name": f"v{number}", "emptyDir": {}} for number in range(400)],
        "mainContainer": {
            "image": "i",
            "volumeMounts": [{"name": f"v{each}", "mountPath": f"/{each}"} for each in range(400)],
        },
    }
    return {
        "long-name": {"services": {"x" * 350_000: frontend}},
        "many-variables": {"services": {"a": {**frontend, "envs": envs(10_000)}}},
        "some-variables": {"services": {"a": {**frontend, "envs": envs(2000)}}},
        "shared-variables": {
            "envs": envs(3000),
            "services": {f"s{number}": frontend for number in range(20)},
        },
        "long-script": {"services": {"a": {**frontend, "extraPodSpec": long_script}}},
        "many-volumes": {"services": {"a": {**frontend, "extraPodSpec": many_volumes}}},
    }


@dataclass
class Probing:
    """Asks `/healthz` all the time."""

    port: int
    slowest_seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def ask(self) -> None:
        began = time.monotonic()
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.port}/healthz", timeout=10
            ) as answer:
                answer.read()
        except OSError as error:
            self.wrong.append(str(error))
        self.slowest_seconds = max(self.slowest_seconds, time.monotonic() - began)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        ended = threading.Event()

        def ask() -> None:
            while not ended.wait(0.1):
                self.ask()

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def resident_bytes(pid: int) -> int:
    """The memory of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    found = 0
    for each in (str(pid), *children):
        try:
            lines = Path(f"/proc/{each}/status").read_text("ascii").splitlines()
        except OSError:
            continue  # it has ended meanwhile
        sizes = [line.split()[1] for line in lines if line.startswith("VmRSS:")]
        found += sum(map(int, sizes)) * 1024
    return found


def seconds_until_ready(world: World, name: str) -> float:
    began = time.monotonic()
    world.create(GRAPH, graph(name))
    world.eventually(GRAPH, name, is_ready, within_seconds=120)
    return time.monotonic() - began


@dataclass
class Tenant:
    """Stores what it may."""

    world: World
    stored: dict[str, str] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    bytes: int = 0

    def store(self, count: int) -> None:
        for number, (what, spec) in enumerate(islice(cycle(hostile().items()), count)):
            name = f"{what}-{number}"
            try:
                self._create({"metadata": {"name": name}, "spec": spec})
            except Refused as refused:  # by a bound of the definitions
                self.refused[name] = refused.code
            else:
                self.stored[name] = what
                self.bytes += len(msgspec.json.encode(spec))

    def _create(self, body: Object) -> None:
        """Create a graph without strict validation of its fields, which takes the server long."""
        kind = {"apiVersion": GRAPH.api_version, "kind": GRAPH.name}
        request = urllib.request.Request(  # noqa: S310 - the server is our own
            self.world.server + GRAPH.path(self.world.namespace) + "?fieldValidation=Ignore",
            data=msgspec.json.encode({**kind, **body}),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, context=self.world.tls, timeout=90) as answer:  # noqa: S310
                answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise Refused(error.code, error.read().decode()) from None

    def reason(self, name: str) -> Any:
        found = self.world.get(GRAPH, name)
        conditions = (found or {}).get("status", {}).get("conditions", [])
        ready = next((each for each in conditions if each["type"] == "Ready"), None)
        return ready and ready["reason"]


@pytest.fixture
def other(kinds: ControlPlane) -> Iterator[World]:
    """The namespace of the hostile tenant."""
    name = f"storm-{os.getpid()}"
    kinds.kubectl("create", "namespace", name)
    yield kinds.world(name)
    kinds.kubectl("delete", "namespace", name, "--wait=false")


def test_a_storm_of_stored_objects_holds_up_no_other_tenant(
    world: World, other: World, kinds: ControlPlane, tmp_path: Path
) -> None:
    (health,) = free_ports(1)
    flags = (
        "--metrics-bind-address=0",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        "--leader-elect",
        f"--leader-election-namespace={world.namespace}",
    )
    with OperatorProcess(kinds.kubeconfig, tmp_path / "log", flags) as operator:
        operator.says("elected")
        holder = world.eventually(Lease.KIND, LEASE)["spec"]["holderIdentity"]
        seconds_until_ready(world, "first")
        calm_seconds = seconds_until_ready(world, "calm")
        calm_bytes = resident_bytes(operator.pid)
        tenant, probing = Tenant(other), Probing(health)
        with probing.going_on():
            storm = threading.Thread(target=tenant.store, args=(STORED,))
            storm.start()
            seconds = seconds_until_ready(world, "beside")
            storm.join()
            world.until(
                lambda: all(map(tenant.reason, tenant.stored)),
                what=lambda: str({each: tenant.reason(each) for each in tenant.stored}),
                within_seconds=900 if IS_LONG else 90,
            )
        used_bytes = resident_bytes(operator.pid) - calm_bytes
        said = operator.log.read_text("utf-8")
        assert operator.ended is None, said
        assert holder == world.eventually(Lease.KIND, LEASE)["spec"]["holderIdentity"]
    figures = (
        f"ready after {calm_seconds:.1f} s in calm, {seconds:.1f} s beside; /healthz after at most "
        f"{probing.slowest_seconds:.2f} s; {tenant.bytes / MIB:.0f} MiB stored, "
        f"{used_bytes / MIB:.0f} MiB more resident"
    )
    assert [] == probing.wrong, figures
    assert probing.slowest_seconds < (1 if IS_LONG else BUSY_SECONDS), figures
    assert {*tenant.refused.values()} <= {400, 422}
    assert seconds <= 2 * calm_seconds + SLACK_SECONDS, figures
    assert used_bytes <= 2 * tenant.bytes + 100 * MIB, figures
    assert STALL not in said, next(line for line in said.splitlines() if STALL in line)
    assert "Traceback" not in said
    large = [each for each, what in tenant.stored.items() if what == "many-variables"]
    assert large
    for name in large:
        found = other.get(GRAPH, name)
        assert found is not None
        assert "too_large" == condition(found, "Ready")["reason"]
