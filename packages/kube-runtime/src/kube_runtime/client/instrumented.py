"""A transport with metrics."""

from dataclasses import dataclass

from kube_runtime.client.transport import Answer, Request, Transport
from kube_runtime.clock import loop_time
from kube_runtime.errors import Unreachable
from kube_runtime.metrics import RuntimeMetrics

_CONTENT_VERBS = {
    "application/apply-patch+yaml": "apply",
    "application/merge-patch+json": "patch",
}
_METHOD_VERBS = {"POST": "create", "PUT": "update", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class InstrumentedTransport:
    """Wraps a transport, and counts its requests by verb, resource and status code."""

    transport: Transport
    metrics: RuntimeMetrics

    async def send(self, request: Request) -> Answer:
        """Send a request.

        Raises:
            Unreachable: no response; counted as code 0.
        """
        verb, resource = verb_and_resource(request)
        started = loop_time()
        try:
            answer = await self.transport.send(request)
        except Unreachable:
            self.metrics.requested(verb, resource, 0, loop_time() - started)
            raise
        self.metrics.requested(verb, resource, answer.status, loop_time() - started)
        return answer


def verb_and_resource(request: Request) -> tuple[str, str]:
    """The verb, as in audit logs, and the resource with its subresource."""
    parts = request.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:  # noqa: PLR2004 - a namespace's contents
        rest = rest[2:]
    named = len(rest) > 1
    resource = "/".join((rest[0], *rest[2:])) if rest else "discovery"
    if request.method == "GET":
        verb = "get" if named else "watch" if request.query.get("watch") else "list"
        return ("get" if not rest else verb), resource
    content = _CONTENT_VERBS.get(request.content_type) if request.method == "PATCH" else None
    return content or _METHOD_VERBS.get(request.method, request.method.lower()), resource
