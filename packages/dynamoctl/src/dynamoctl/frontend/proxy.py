"""The frontend of a graph, reached through the API server's proxy of Services.

This needs the permissions `get` and `create` for `services/proxy`, and no network route to the pods.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import label_value
from dynamoctl.cluster.target import Missing, Target
from kube_runtime.client.api_errors import error_of_answer
from kube_runtime.client.transport import MOST_ANSWER_BYTES, Answer, Request, Transport
from kube_runtime.decode import UNREADABLE
from kube_runtime.types.core import Service
from kube_runtime.types.meta import Struct
from kube_runtime.url_path import UrlPath, proxied

_OK = range(200, 300)


class _Port(Struct):
    """A port of a Service; "" as name if it has none."""

    port: int
    name: str = ""


class _ServiceSpec(Struct):
    """The ports of a Service."""

    ports: tuple[_Port, ...] = ()


@dataclass(frozen=True, slots=True)
class Frontend:
    """The Service of a frontend, and the path of its proxy in the API server."""

    transport: Transport
    service: str
    port: int
    path: UrlPath

    async def send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send a request; the answer, whatever its status, may still be arriving.

        The query in `path` is sent as it is written.

        Raises:
            Invalid: the path leads out of the Service.
            Unreachable: the API server does not answer.
        """
        request = Request(
            method,
            proxied(self.path, path),
            body=body,
            content_type=content_type,
            timeout_seconds=None,
            accept="*/*",
        )
        return await self.transport.send(request)

    async def json(self, path: str) -> object:
        """The JSON at a path of the frontend.

        Raises:
            ApiError: the frontend, or the API server in front of it, answers with an error.
            Missing: the answer is not JSON.
        """
        async with self.answered("GET", path) as answer:
            body = await answer.read(MOST_ANSWER_BYTES)
        try:
            return msgspec.json.decode(body)
        except UNREADABLE as error:
            raise Missing(f"{self.service}{path} is not JSON: {error}") from error

    @asynccontextmanager
    async def answered(
        self, method: str, path: str, body: bytes | None = None
    ) -> AsyncIterator[Answer]:
        """A successful answer, closed afterwards.

        Raises:
            ApiError: the frontend, or the API server in front of it, answers with an error.
        """
        answer = await self.send(method, path, body=body)
        try:
            if answer.status not in _OK:
                text = await answer.read_error()
                raise error_of_answer(answer.status, answer.headers, text)
            yield answer
        finally:
            await answer.aclose()


async def frontend_of(at: Target[DynamoGraphDeployment]) -> Frontend:
    """The frontend of a graph.

    Raises:
        Missing: the graph does not exist, or has no frontend, or that has no Service yet.
    """
    graph = await at.get()
    keys = [key for key, it in graph.spec.services.items() if it.component_type == "frontend"]
    if not keys:
        raise Missing(f"graph {graph.key} has no service of componentType frontend")
    selector = ",".join(
        (
            f"{labels.GRAPH}={label_value(graph.metadata.name)}",
            f"{labels.COMPONENT}={label_value(min(keys))}",
        )
    )
    for service in await at.reading.all(Service, namespace=at.key.namespace, labels=selector):
        ports = msgspec.json.decode(service.spec, type=_ServiceSpec).ports
        named = [port for port in ports if port.name == "http"] or list(ports)
        if named:
            name, port = service.metadata.name, named[0].port
            path = Service.KIND.path(at.key.namespace, f"http:{name}:{port}", "proxy")
            return Frontend(at.reading.transport, name, port, path)
    raise Missing(
        f"the frontend of graph {graph.key} has no Service yet; see `dynamoctl why {graph.metadata.name}`"
    )
