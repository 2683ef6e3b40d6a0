"""Serve the webhooks over HTTPS.

Any client that reaches the port may send anything, or, with a client CA, only those with a certificate of
it. The API server presents one if its AdmissionConfiguration has a kubeconfig for webhooks
(`docs/admission.md`). The response is always a review or a short refusal, in bounded time, and no other
request waits for it. A renewed certificate applies to new connections. Shutdown waits for requests on
connections that the API server has just opened.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NoReturn

import structlog
from aiohttp import web

from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_operator.admission.body_limits import JSON, LARGEST_BODY, BodyLimits, RequestRefused
from dynamo_operator.admission.cross_namespace import CrossNamespace
from dynamo_operator.admission.decision import Decision
from dynamo_operator.admission.decision_pool import DecisionPool
from dynamo_operator.admission.review import NotAReview, Request, answer, request_in
from dynamo_operator.admission.rules import Rules
from dynamo_operator.admission.webhook_configuration import path_of
from dynamo_operator.observability.metrics import WebhookMetrics
from kube_runtime.controller.worker_pool import WorkBusy
from kube_runtime.errors import ConfigError
from kube_runtime.serving.clients import client_of
from kube_runtime.serving.connection_limit import ConnectionLimit
from kube_runtime.serving.tls import Certificate

_SHUTDOWN_SECONDS: Final = 1.0
_DRAIN_SECONDS: Final = 3.0
REVIEW_SECONDS: Final = 8.0
"""Seconds of a review, including its body. The API server waits ten seconds."""
_MOST_LOGGED: Final = 10
_LONGEST: Final = 300
"""Most problems in a log entry, and characters of each."""
_EVERYWHERE: Final = (None, "", "0.0.0.0", "::")  # noqa: S104  # compared, not bound to
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Clients:
    """The accepted clients: those with a certificate of the CA in `file` and the common name `name`.

    Without a file, any client; without a name, any client of that CA.
    """

    file: Path | None = None
    name: str = ""

    async def authorities(self) -> bytes | None:
        """Read the certificates of the CA as PEM; None if clients need no certificate.

        Raises:
            ConfigError: they cannot be read.
        """
        if self.file is None:
            return None
        try:
            pem = await asyncio.to_thread(self.file.read_bytes)
        except OSError as error:
            raise ConfigError(str(self.file), error.strerror or str(error)) from error
        if b"-----BEGIN CERTIFICATE-----" not in pem:
            raise ConfigError(str(self.file), "expected certificates as PEM")
        return pem

    def check(self, http: web.Request) -> None:
        """Check the common name of the client's certificate; the handshake has verified its CA.

        Raises:
            RequestRefused: it has another name.
        """
        if self.file is None or not self.name:
            return
        if self.name not in _common_names(http.get_extra_info("peercert")):
            raise RequestRefused(
                HTTPStatus.FORBIDDEN, "the client certificate has another common name"
            )


ANY_CLIENT: Final = Clients()


class WebhookServer:
    """Reviews objects until it is cancelled, and for `drain_seconds` more."""

    def __init__(
        self,
        address: tuple[str | None, int],
        certificate: Certificate,
        decisions: DecisionPool,
        metrics: WebhookMetrics,
        *,
        drain_seconds: float = _DRAIN_SECONDS,
        cross_namespace: CrossNamespace | None = None,
        clients: Clients = ANY_CLIENT,
    ) -> None:
        self._address = address
        self._certificate = certificate
        self._metrics = metrics
        self._drain_seconds = drain_seconds
        self._cross_namespace = cross_namespace
        self.decisions = decisions
        self._clients = clients
        self._limits = BodyLimits()
        self._is_ending = False
        self.listening = asyncio.Event()
        self.port = address[1]

    @property
    def own_address(self) -> tuple[str, int]:
        """The address at which this process reaches its own server."""
        host = self._address[0]
        return ("127.0.0.1" if host in _EVERYWHERE else str(host)), self.port

    async def run(self) -> NoReturn:
        """Serve until cancelled, as soon as there is a certificate.

        Raises: ConfigError if the address cannot be bound.
        """
        await self._certificate.loaded.wait()
        app = web.Application(client_max_size=LARGEST_BODY)
        for rules in self.decisions.rules:
            app.router.add_post(path_of(rules.type_.KIND), self._handler(rules))
        listener = ConnectionLimit(app, shutdown_seconds=_SHUTDOWN_SECONDS)
        try:
            self.port = await listener.listen(self._address, self._certificate.listener)
            self.listening.set()
            await listener.closed()
        finally:
            self._is_ending = True
            try:
                if self.listening.is_set():
                    await asyncio.sleep(self._drain_seconds)
            finally:
                await listener.close()

    def _handler(self, rules: Rules[Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(http: web.Request) -> web.Response:
            client = client_of(http.remote)
            try:
                self._clients.check(http)
                with self._limits.admitted(http, client):
                    async with asyncio.timeout(REVIEW_SECONDS):
                        body = await self._limits.read(http)
                        response = await self._review(rules, body, client)
            except RequestRefused as error:
                response = web.Response(status=error.status, text=f"{error}\n")
                response.force_close()  # the rest of the body is not read
            except (TimeoutError, WorkBusy):
                text = "too many requests in progress, retry later\n"
                response = web.Response(status=503, text=text)
            except NotAReview as error:
                response = web.Response(status=400, text=f"{error}\n")
            if self._is_ending:
                response.force_close()
            return response

        return handle

    async def _review(self, rules: Rules[Any], body: bytes, client: str) -> web.Response:
        """Review an object, and return the response.

        Raises:
            NotAReview: the body is not a review.
            WorkBusy: too many reviews are queued.
        """
        started = time.perf_counter()
        request = request_in(body)
        decision = await self.decisions.decide(rules, request, client)
        # Checked in excluded namespaces too: a tenant may write and delete the Lease that excludes one.
        is_request = rules.type_ is DynamoGraphDeploymentRequest
        if is_request and decision.allowed and self._cross_namespace is not None:
            foreign = await self._cross_namespace.problems(request, client)
            decision = (
                replace(decision, problems=foreign, reason="forbidden") if foreign else decision
            )
        kind = rules.type_.KIND.name
        seconds = time.perf_counter() - started
        self._metrics.reviewed(kind, request.operation, reason=decision.reason, seconds=seconds)
        if not decision.allowed:
            _log_decision(kind, request, decision)
        return web.Response(body=answer(request.uid, decision), content_type=JSON)


def _log_decision(kind: str, request: Request, decision: Decision) -> None:
    _log.info(
        "validation failed",
        kind=kind,
        namespace=request.namespace,
        name=request.name,
        operation=request.operation,
        user=request.user_info.username,
        error=[str(problem)[:_LONGEST] for problem in decision.problems[:_MOST_LOGGED]],
        problems=len(decision.problems),
    )


def _common_names(certificate: object) -> set[str]:
    """The common names of a certificate as `ssl.SSLObject.getpeercert` returns it."""
    subject = certificate.get("subject", ()) if isinstance(certificate, dict) else ()
    return {value for part in subject for name, value in part if name == "commonName"}
