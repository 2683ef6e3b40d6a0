"""The webhooks over HTTPS.

Any client that reaches the port may send anything. The answer is always a review, or a short refusal, in a
bounded time, and no other request waits for it. A certificate can change while the server runs, for new
connections; shutdown is slow enough for connections that the API server has just opened.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Final, NoReturn

import structlog
from aiohttp import web

from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_operator.admission.body_limits import JSON, LARGEST_BODY, BodyLimits, RequestRefused
from dynamo_operator.admission.clients import ANYBODY, Clients
from dynamo_operator.admission.cross_namespace import CrossNamespace
from dynamo_operator.admission.decision import Decision
from dynamo_operator.admission.decision_pool import DecisionPool
from dynamo_operator.admission.metrics import WebhookMetrics
from dynamo_operator.admission.registration import path_of
from dynamo_operator.admission.review import NotAReview, Request, answer, request_in
from dynamo_operator.admission.rules import Rules
from kube_runtime.controller.worker_pool import WorkBusy
from kube_runtime.serving.clients import client_of
from kube_runtime.serving.connection_limit import ConnectionLimit
from kube_runtime.serving.tls import Certificate

_SHUTDOWN_SECONDS: Final = 1.0
_DRAIN_SECONDS: Final = 3.0
REVIEW_SECONDS: Final = 8.0
"""Seconds that a review may take, its body included. The API server waits ten seconds."""
_TOLD: Final = 10
_LONGEST: Final = 300
"""Problems in a log entry, and characters of each."""
_EVERYWHERE: Final = (None, "", "0.0.0.0", "::")  # noqa: S104  # told apart, not bound to
_log = structlog.get_logger()


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
        clients: Clients = ANYBODY,
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
        """The address at which this process itself reaches the server."""
        host = self._address[0]
        return ("127.0.0.1" if host in _EVERYWHERE else str(host)), self.port

    async def run(self) -> NoReturn:
        """Serve until cancelled, from the moment that there is a certificate.

        Raises: ConfigError, where the address cannot be had.
        """
        await self._certificate.loaded.wait()
        app = web.Application(client_max_size=LARGEST_BODY)
        for rules in self.decisions.rules:
            app.router.add_post(path_of(rules.type_.KIND), self._handler(rules))
        gate = ConnectionLimit(app, shutdown_seconds=_SHUTDOWN_SECONDS)
        try:
            self.port = await gate.listen(self._address, self._certificate.listener)
            self.listening.set()
            await gate.closed()
        finally:
            self._is_ending = True
            try:
                if self.listening.is_set():
                    await asyncio.sleep(self._drain_seconds)
            finally:
                await gate.close()

    def _handler(self, rules: Rules[Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(http: web.Request) -> web.Response:
            client = client_of(http.remote)
            try:
                self._clients.check(http)
                with self._limits.admitted(http, client):
                    async with asyncio.timeout(REVIEW_SECONDS):
                        body = await self._limits.read(http)
                        response = await self._answered(rules, body, client)
            except RequestRefused as error:
                response = web.Response(status=error.status, text=f"{error}\n")
                response.force_close()  # what comes after it is of no interest
            except (TimeoutError, WorkBusy):
                text = "too many requests in progress, retry later\n"
                response = web.Response(status=503, text=text)
            except NotAReview as error:
                response = web.Response(status=400, text=f"{error}\n")
            if self._is_ending:
                response.force_close()
            return response

        return handle

    async def _answered(self, rules: Rules[Any], body: bytes, client: str) -> web.Response:
        """The answer to a review.

        Raises:
            NotAReview: it is none.
            WorkBusy: there are too many reviews now.
        """
        started = time.perf_counter()
        request = request_in(body)
        verdict = await self.decisions.verdict(rules, request, client)
        # Also where another operator's Lease excludes the namespace: a tenant may write and delete one.
        asks = rules.type_ is DynamoGraphDeploymentRequest
        if asks and verdict.allowed and self._cross_namespace is not None:
            foreign = await self._cross_namespace.problems(request, client)
            verdict = replace(verdict, problems=foreign, reason="forbidden") if foreign else verdict
        kind = rules.type_.KIND.name
        seconds = time.perf_counter() - started
        self._metrics.reviewed(kind, request.operation, reason=verdict.reason, seconds=seconds)
        if not verdict.allowed:
            _log_decision(kind, request, verdict)
        return web.Response(body=answer(request.uid, verdict), content_type=JSON)


def _log_decision(kind: str, request: Request, verdict: Decision) -> None:
    _log.info(
        "validation failed",
        kind=kind,
        namespace=request.namespace,
        name=request.name,
        operation=request.operation,
        user=request.user_info.username,
        error=[str(problem)[:_LONGEST] for problem in verdict.problems[:_TOLD]],
        problems=len(verdict.problems),
    )
