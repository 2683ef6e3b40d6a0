"""`make bench`: what a graph costs. Printed, never a pass or fail by time.

python -m tests.bench
"""

import resource
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec

from cluster.audit import Audit
from cluster.graph.graphs import graph
from cluster.operator_process import OperatorProcess
from cluster.world import World
from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.crd import custom_resource_definitions
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.controlplane.instance import Instance
from dynamo_operator.controlplane.progress import shown
from dynamo_operator.facts import Facts
from dynamo_operator.kube.contained import contained
from dynamo_operator.kube.kind import Object
from dynamo_operator.render.component import component_objects
from dynamo_operator.render.graph import graph_objects
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation.graph import graph_problems

GRAPH = DynamoGraphDeployment.KIND
GRAPHS = 20


def main() -> None:
    """Print all measurements."""
    pure()
    command()
    with tempfile.TemporaryDirectory() as folder, a_world(Path(folder)) as (world, audit):
        requests(world, audit)
        convergence(world, audit)


def pure() -> None:
    """CPU time of the pure steps, for the graph of three services."""
    body = graph()
    body["metadata"] |= {"namespace": "bench", "uid": "u", "generation": 1}
    loaded = msgspec.convert(body, DynamoGraphDeployment)
    facts, settings = Facts(), RenderSettings()
    wanted = graph_objects(loaded, facts, settings)
    components = [
        msgspec.convert(each, DynamoComponentDeployment)
        for each in wanted
        if each["kind"] == DynamoComponentDeployment.KIND.name
    ]
    deployment = component_objects(components[0], facts, settings)[-1]
    print("pure steps, CPU time each:")
    per("validate a graph of three services", lambda: graph_problems(loaded, facts, settings))
    per("render its own objects", lambda: graph_objects(loaded, facts, settings))
    per("render one component", lambda: component_objects(components[0], facts, settings))
    per("compare one Deployment with the live one", lambda: contained(deployment, deployment))


def command() -> None:
    """The whole process `dynamoctl render` for a graph of ten services, and an empty one beside it."""
    service = next(iter(graph()["spec"]["services"].values()))
    body: Object = {**graph(), "apiVersion": GRAPH.api_version, "kind": GRAPH.name}
    body["spec"]["services"] = {f"S{number}": service for number in range(10)}
    program = str(Path(sys.executable).with_name("dynamoctl"))
    text = msgspec.json.encode(body)
    print("whole processes, median of ten:")
    process("dynamoctl render, ten services", [program, "render", "-f", "-"], text)
    process("python, which does nothing", [sys.executable, "-c", "pass"], b"")


def process(what: str, command: list[str], text: bytes) -> None:
    """Print how long a program takes, by the clock and of the processor."""
    clock, processor = [], []
    for _ in range(10):
        started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, input=text, stdout=subprocess.DEVNULL, check=True)  # noqa: S603
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        clock.append(time.monotonic() - started)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        processor.append(spent)
    print(f"  {what:<44} {median(clock):8.3f} s, of the processor {median(processor):.3f} s")


def per(what: str, step: Callable[[], object], times: int = 300) -> None:
    """Print how long one step takes, the best of five rounds."""
    rounds = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(times):
            step()
        rounds.append((time.process_time() - started) / times)
    print(f"  {what:<44} {min(rounds) * 1e6:8.0f} µs")


@contextmanager
def a_world(folder: Path) -> Iterator[tuple[World, Audit]]:
    """A control plane with our kinds and the operator on it."""
    definitions = folder / "definitions.json"
    body = {"apiVersion": "v1", "kind": "List", "items": custom_resource_definitions()}
    definitions.write_bytes(msgspec.json.encode(body))
    instance = Instance("bench", folder)
    try:
        with shown() as progress:
            instance.up(crd_files=(definitions,), nodes=16, progress=progress)
        tls = ssl.create_default_context(cafile=instance.pki / "ca.crt")
        tls.load_cert_chain(instance.pki / "admin.crt", instance.pki / "admin.key")
        with OperatorProcess(instance.kubeconfig, folder / "operator.log") as operator:
            operator.ready()
            yield World(instance.server, tls, "default"), Audit(instance.audit_log)
    finally:
        instance.down()


def requests(world: World, audit: Audit) -> None:
    """API requests for one graph of three services, from its creation until it is settled."""
    print("requests for a graph of three services:")
    started, since = time.monotonic(), audit.now()
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready, within_seconds=60)
    ready = time.monotonic() - started
    time.sleep(2)
    calls = audit.calls(since=since)
    for call, count in sorted(calls.items()):
        print(f"  {call.verb:<8} {call.resource:<36} {count:4}")
    print(f"  {'all':<45} {calls.total():4}   (the Go operator: 114)")
    print(f"  ready after {ready:.1f} s")
    since = audit.now()
    time.sleep(10)
    print(f"  settled, in 10 s {audit.calls(since=since).total():32}")


def convergence(world: World, audit: Audit) -> None:
    """Many graphs at once."""
    since, started = audit.now(), time.monotonic()
    for number in range(GRAPHS):
        world.create(GRAPH, graph(f"g{number}"))
    for number in range(GRAPHS):
        world.eventually(GRAPH, f"g{number}", is_ready, within_seconds=120)
    took = time.monotonic() - started
    time.sleep(2)
    total = audit.calls(since=since).total()
    print(f"{GRAPHS} graphs at once: ready after {took:.1f} s, {total / GRAPHS:.1f} requests each")


def is_ready(body: Object) -> bool:
    """Whether a graph says that its newest spec is ready."""
    conditions = body.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


if __name__ == "__main__":
    main()
