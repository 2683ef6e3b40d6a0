"""The floor: write the same objects and statuses, each once, as fast as the API server allows.

    python -m bench.floor KUBECONFIG STATUSES COUNT

It uses the operator's client library and decides nothing, so no client that creates these objects can be
faster. With "" as STATUSES it writes none: the Go operator's figures include the time of such a client on
their machine.
"""

import asyncio
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import msgspec

from bench.user import NAMESPACE, client, graph_body
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.render import component_parts
from dynamo_operator.features.decision import GraphInputs
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import decide_valid
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.client.client import Client
from kube_runtime.types.kinds import Deployment, Role, RoleBinding, Service, ServiceAccount
from kube_runtime.types.meta import Key, Object, Resource, controller_reference

AGENT = "bench-floor"
GRAPHS_AT_ONCE = 8
_TYPES: dict[str, type[Resource]] = {
    type_.KIND.name: type_
    for type_ in (*(DynamoComponentDeployment, ServiceAccount, Role, RoleBinding), *(Service, Deployment))
}
_FACTS = Facts()
_SETTINGS = RenderSettings()


class Statuses(msgspec.Struct):
    """The statuses of one successful graph and its components, with its name in them."""

    name: str
    graph: dict[str, Any]
    components: dict[str, dict[str, Any]]

    def of(self, status: Object, name: str) -> Object:
        """The status for a graph with another name."""
        text = msgspec.json.encode(status).decode()
        for mark in ('"', " ", "/", "'"):
            text = text.replace(f"{mark}{self.name}-", f"{mark}{name}-")
        changed: Object = msgspec.json.decode(text)
        return changed


async def run(kubeconfig: Path, statuses: Statuses | None, count: int) -> Object:
    """Create graphs; return the time and CPU that it took."""
    names = iter(f"g{number}" for number in range(count))
    async with client(kubeconfig, AGENT) as connected:
        await connected.get_json("version")  # imports and connections are not measured
        before, started = process_time(), monotonic()

        async def several() -> None:
            for name in names:
                await create(connected, name, statuses)

        await asyncio.gather(*(several() for _ in range(GRAPHS_AT_ONCE)))
    return {
        "seconds": monotonic() - started,
        "cpu_seconds": process_time() - before,
        "started_at": started,  # Linux has one monotonic clock for all processes
    }


async def create(to: Client, name: str, statuses: Statuses | None) -> None:
    """Create one graph with its objects, then those of its components, then write the statuses, if any."""
    graph = await to.create(DynamoGraphDeployment, graph_body(name))
    desired = decide_valid(graph, GraphInputs(_FACTS), _SETTINGS, datetime.now(UTC)).objects
    objects = await _create_all(to, graph, desired)
    components = [component for component in objects if isinstance(component, DynamoComponentDeployment)]
    await asyncio.gather(
        *(
            _create_all(to, component, chain(*component_parts(component, _FACTS, _SETTINGS)))
            for component in components
        )
    )
    if statuses is None:
        return
    for component in components:
        status = statuses.of(statuses.components[component.spec.service_name or ""], name)
        await to.merge_patch(type(component), component.key, {"status": status}, subresource="status")
    status = statuses.of(statuses.graph, name)
    await to.merge_patch(type(graph), graph.key, {"status": status}, subresource="status")


async def _create_all(to: Client, owner: Resource, objects: Iterable[Object]) -> list[Resource]:
    reference = controller_reference(owner, owner.KIND)
    bodies = (
        {**desired, "metadata": {**desired["metadata"], "ownerReferences": [reference]}}
        for desired in objects
    )
    return await asyncio.gather(*(to.create(_TYPES[body["kind"]], body) for body in bodies))


async def statuses_of(to: Client, name: str) -> Statuses:
    """The statuses of a graph as the operator wrote them."""
    graph = await to.get_raw(DynamoGraphDeployment.KIND, Key(NAMESPACE, name))
    pages = to.pages(DynamoComponentDeployment, namespace=NAMESPACE)
    listed = [component.key async for page in pages for component in page.items]
    stored = [await to.get_raw(DynamoComponentDeployment.KIND, key) for key in listed]
    components = {
        component["spec"]["serviceName"]: component["status"]
        for component in stored
        if component["metadata"]["ownerReferences"][0]["name"] == name
    }
    return Statuses(name, graph["status"], components)


def main() -> None:
    """Print the result as JSON."""
    kubeconfig, statuses, count = sys.argv[1:]
    template = msgspec.json.decode(Path(statuses).read_bytes(), type=Statuses) if statuses else None
    taken = asyncio.run(run(Path(kubeconfig), template, int(count)))
    print(msgspec.json.encode(taken).decode())


if __name__ == "__main__":
    main()
