"""A transport that counts what goes through it."""

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
    """Another transport, with its requests counted by verb, resource and answer."""

    transport: Transport
    metrics: RuntimeMetrics

    async def send(self, request: Request) -> Answer:
        """The answer of the other transport.

        Raises:
            Unreachable: no answer; it is counted as code 0.
        """
        verb, resource = described(request)
        started = loop_time()
        try:
            answer = await self.transport.send(request)
        except Unreachable:
            self.metrics.requested(verb, resource, 0, loop_time() - started)
            raise
        self.metrics.requested(verb, resource, answer.status, loop_time() - started)
        return answer


def described(request: Request) -> tuple[str, str]:
    """The verb (as the audit log names it) and the resource, with its subresource, of a request."""
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
