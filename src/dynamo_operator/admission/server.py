"""The webhooks over HTTPS.

The hard part is what does not come from the API server: anybody who reaches the port may send anything.
Whatever it is, the answer is a review, or a 4xx in a few words; a certificate is changed under way, for new
connections, and the end is slow enough for those that the API server has just opened.
"""

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn

import structlog
from aiohttp import web

from dynamo_operator.admission.judgement import ALLOWED, Verdict, judged
from dynamo_operator.admission.metrics import WebhookMetrics
from dynamo_operator.admission.registration import path_of
from dynamo_operator.admission.review import NotAReview, Request, answer, request_in
from dynamo_operator.admission.rules import RULES, Circumstances, Rules
from dynamo_operator.kube.serving import Pair, listen, server_context

LARGEST_BODY: Final = 7 * 1024 * 1024
"""In bytes. The API server takes 3 MiB for an object, and an update shows it twice."""

_JSON: Final = "application/json"
_SHUTDOWN_SECONDS: Final = 5.0
_BODY_SECONDS: Final = 5.0
"""So long a body may take: the API server sends it at once, and waits ten seconds for the whole answer."""
_TOLD: Final = 10
_LONGEST: Final = 300
"""Problems in a log entry, and characters of each."""
_EVERYWHERE: Final = (None, "", "0.0.0.0", "::")  # noqa: S104  # told apart, not bound to
_log = structlog.get_logger()


class Certificate:
    """The certificate that new connections get; None until the first one is there."""

    def __init__(self) -> None:
        self.pair: Pair | None = None
        self.loaded = asyncio.Event()
        self._context: ssl.SSLContext | None = None
        self.listener = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        """What the socket is opened with. It has no certificate: each handshake is handed the newest."""
        self.listener.minimum_version = ssl.TLSVersion.TLSv1_2
        self.listener.set_alpn_protocols(["http/1.1"])
        self.listener.sni_callback = self._choose

    async def load(self, pair: Pair) -> None:
        """Serve that certificate from now on.

        Raises:
            ssl.SSLError: it cannot be used; the one before stays.
        """
        if pair == self.pair:
            return
        self._context = await asyncio.to_thread(server_context, pair)
        self.pair = pair
        self.loaded.set()

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _from: ssl.SSLContext
    ) -> int | None:
        if self._context is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._context
        return None


class WebhookServer:
    """Reviews objects until it is cancelled, and for `drain_seconds` more."""

    def __init__(
        self,
        address: tuple[str | None, int],
        certificate: Certificate,
        circumstances: Callable[[Request], Circumstances],
        skips: Callable[[str], bool],
        metrics: WebhookMetrics,
        *,
        drain_seconds: float = 3.0,
    ) -> None:
        self._address = address
        self._certificate = certificate
        self._circumstances = circumstances
        self._skips = skips
        self._metrics = metrics
        self._drain_seconds = drain_seconds
        self._is_ending = False
        self.listening = asyncio.Event()
        self.port = address[1]

    @property
    def own_address(self) -> tuple[str, int]:
        """Where this process itself reaches the server."""
        host = self._address[0]
        return ("127.0.0.1" if host in _EVERYWHERE else str(host)), self.port

    async def run(self) -> NoReturn:
        """Serve until cancelled, from the moment that there is a certificate.

        Raises: ConfigError, where the address cannot be had.
        """
        await self._certificate.loaded.wait()
        app = web.Application(client_max_size=LARGEST_BODY)
        for rules in RULES:
            app.router.add_post(path_of(rules.type_.KIND), self._handler(rules))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            self.port = await listen(runner, self._address, self._certificate.listener)
            self.listening.set()
            await asyncio.get_running_loop().create_future()  # until this task is cancelled
            raise AssertionError
        finally:
            self._is_ending = True
            try:
                if self.listening.is_set():
                    await asyncio.sleep(self._drain_seconds)
            finally:
                await runner.cleanup()

    def _handler(self, rules: Rules[Any]) -> Callable[[web.Request], Any]:
        async def handle(http: web.Request) -> web.Response:
            started = time.perf_counter()
            if http.content_type != _JSON:
                return web.Response(status=400, text=f"expected {_JSON}, got {http.content_type}\n")
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    request = request_in(await http.read())
            except TimeoutError:
                return web.Response(status=408, text="the body did not come in time\n")
            except NotAReview as error:
                return web.Response(status=400, text=f"{error}\n")
            verdict = self.verdict(rules, request)
            kind = rules.type_.KIND.name
            seconds = time.perf_counter() - started
            self._metrics.reviewed(kind, request.operation, reason=verdict.reason, seconds=seconds)
            if not verdict.allowed:
                _told(kind, request, verdict)
            response = web.Response(body=answer(request.uid, verdict), content_type=_JSON)
            if self._is_ending:
                response.force_close()
            return response

        return handle

    def verdict(self, rules: Rules[Any], request: Request) -> Verdict:
        """The verdict on a request, by the rules of its kind."""
        if request.new is None or request.operation == "DELETE" or request.sub_resource:
            return ALLOWED  # no spec is stored
        at = {"namespace": request.namespace, "name": request.name}
        if self._skips(request.namespace):
            text = "skipping validation - namespace has namespace-restricted operator"
            _log.debug(text, kind=rules.type_.KIND.name, **at)
            return ALLOWED
        text = f"validate {request.operation.lower()}"
        _log.debug(text, kind=rules.type_.KIND.name, **at)
        return judged(rules, request.new, request.old, self._circumstances(request))


def _told(kind: str, request: Request, verdict: Verdict) -> None:
    _log.info(
        "validation failed",
        kind=kind,
        namespace=request.namespace,
        name=request.name,
        operation=request.operation,
        user=request.user_info.username,
        error=[str(each)[:_LONGEST] for each in verdict.problems[:_TOLD]],
        problems=len(verdict.problems),
    )
