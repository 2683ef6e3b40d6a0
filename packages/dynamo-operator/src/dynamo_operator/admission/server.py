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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
import structlog
from aiohttp import web
from msgspec import Raw
from prometheus_client import CollectorRegistry, Counter, Histogram

from dynamo_operator import METRICS_PREFIX, labels
from dynamo_operator.admission.configuration import path_of
from dynamo_operator.admission.decide import Rules
from dynamo_operator.admission.review import Decisions, NotAReview, Request, answer, request_in
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.problems import Problem, ProblemKind
from kube_runtime.apply.suppression import Recent
from kube_runtime.client.client import Client
from kube_runtime.crd import CONVERSION_PATH
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.server import ClientShares, ConnectionLimit, ShareExhausted, client_of
from kube_runtime.times import FairSemaphore, TokenBucket, loop_time
from kube_runtime.tls import Certificate
from kube_runtime.types.kinds import ConfigMap, SubjectAccessReview, question, subject
from kube_runtime.types.meta import Object, Struct, decoder_of
from kube_runtime.wire import UNREADABLE

if TYPE_CHECKING:
    from dynamo_operator.versions.review import Converter

LARGEST_BODY: Final = 7 * 1024 * 1024
"""In bytes. The API server accepts objects of 3 MiB, and an update contains two."""

SMALL_BODY: Final = 64 * 1024
"""In bytes. Connections are limited, so such bodies cannot add up."""

ALL_BODIES: Final = 32 * 1024 * 1024
"""In bytes: larger bodies that are read or validated concurrently."""

LARGEST_CONVERSION: Final = 64 * 1024 * 1024
"""In bytes. A list without a limit, such as one of an informer, is converted in one request."""

ALL_CONVERSIONS: Final = 96 * 1024 * 1024
"""In bytes: larger bodies of conversions that are read or converted concurrently."""

ALL_REVIEWS: Final = 256
"""Concurrent reviews; the limit of connections."""

JSON: Final = "application/json"
_BODY_SECONDS: Final = 5.0
"""Seconds to receive a body. The API server sends it at once, and waits ten seconds for the response."""


class RequestRefused(Exception):
    """The request is refused. `status` is a 4xx."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def _body(http: web.Request) -> bytes:
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await http.read()
    except TimeoutError:
        raise RequestRefused(408, "timed out reading the body") from None
    except (web.RequestPayloadError, ConnectionError) as error:
        raise RequestRefused(400, f"failed to read the body: {error}") from error


# Any client that reaches the port may send requests, so they are refused before their body is read if
# possible.
def _size(http: web.Request, largest: int) -> int:
    """The size of a body, from its Content-Length; refuses what the API server would not send."""
    if http.content_type != JSON:
        raise RequestRefused(400, f"expected {JSON}, got {http.content_type}")
    if http.headers.get("Content-Encoding", "identity") != "identity":
        raise RequestRefused(415, "the body must not be compressed")
    size = http.content_length
    if size is None:
        raise RequestRefused(411, "missing Content-Length")
    if size > largest:
        raise RequestRefused(413, f"the body exceeds {largest} bytes")
    return size


AT_ONCE: Final = 4
BURST: Final = 20
REFILL_SECONDS: Final = 3.0
"""A client may send BURST queries, and one more each REFILL_SECONDS."""

KEPT_SECONDS: Final = 10.0
MOST_REMEMBERED: Final = 1024
"""Number of clients and of answers that are remembered."""

PATH = "spec.deploymentOverrides.namespace"


class _Reviewed(Struct):
    spec: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}


_REVIEWED = decoder_of(_Reviewed)


class TooManyAccessReviews(OperatorError):
    """The client exceeded its rate; no query was sent."""


# A DynamoGraphDeploymentRequest may name the namespace of its graph, and the operator, which may
# create graphs everywhere, creates it. Without this check a user who may write requests could use
# the quota and the Secrets of every namespace. So the webhook asks the API server whether the
# author has the permission. That refuses early, in the author's terminal. The controller relies on
# RBAC of the other namespace, since a webhook is not always called (`requests/read.py`).
class AccessReviews:
    """Sends SubjectAccessReviews, for requests whose graphs are in other namespaces.

    `are_clients_known`: all reviews come from the API server, so clients need no rate limit.
    """

    def __init__(self, client: Client, *, are_clients_known: bool = False) -> None:
        self._client = client
        self._are_clients_known = are_clients_known
        self._turns = FairSemaphore(AT_ONCE)
        self._answers: Recent[tuple[bool, float]] = Recent(MOST_REMEMBERED)
        self._budgets: Recent[TokenBucket] = Recent(MOST_REMEMBERED)

    @property
    def remembered(self) -> tuple[int, int]:
        """Number of remembered answers and clients."""
        return len(self._answers), len(self._budgets)

    # An outsider may send a review with any user in it, and the answer reveals what that user may do.
    # So a client has few queries, only some run at a time, and answers are cached for a moment:
    # outsiders can neither take the capacity of reconciles nor read the permissions of a cluster in
    # bulk.
    async def allowed(self, spec: Object, client: str) -> bool:
        """Whether the API server allows what the spec of a `SubjectAccessReview` describes.

        Raises: TooManyAccessReviews: `client` exceeded its rate; OperatorError: no answer.
        """
        key = msgspec.json.encode(spec)
        cached = self._answers.get(key)
        if cached is not None and cached[1] > loop_time():
            return cached[0]
        if not self._are_clients_known:
            budget = self._budgets.get(client) or TokenBucket(BURST, loop_time())
            self._budgets.put(client, budget)
            if not budget.take(BURST, REFILL_SECONDS, loop_time()):
                raise TooManyAccessReviews("too many questions about users from the same address")
        async with self._turns.slot(client):
            body = question(SubjectAccessReview.KIND, spec)
            review = await self._client.create(SubjectAccessReview, body)
        self._answers.put(key, (review.status.allowed, loop_time() + KEPT_SECONDS))
        return review.status.allowed

    # The spec of a request may change until profiling begins, and after each failure. A user who
    # changes it decides what runs in the other namespace, so the check covers them as well as the
    # author.
    async def problems(self, request: Request, client: str = "") -> tuple[Problem, ...]:
        """A problem if the request leads to a namespace where its author may not create graphs.

        Updates that change neither the spec nor the operator's record of what it has done are not checked:
        other users may label the request.
        """
        deciding = _deciding(request.new, request)
        overrides = (deciding[0] or {}).get("deploymentOverrides") if deciding else None
        namespace = overrides.get("namespace") if isinstance(overrides, dict) else None
        if namespace in (None, "", request.namespace) or deciding == _deciding(request.old, request):
            return ()
        for type_ in (DynamoGraphDeployment, ConfigMap):
            kind = type_.KIND
            target = {"group": kind.group, "resource": kind.plural, "namespace": namespace}
            message = f"{PATH} is {namespace}, where you may not create {kind.name}s"
            try:
                spec = {**subject(request.user_info), "resourceAttributes": {**target, "verb": "create"}}
                if await self.allowed(spec, client):
                    continue
            except OperatorError as error:
                text = f"could not check whether you may create {kind.name}s in {namespace}"
                message = f"{PATH}: {text}: {error}"
            return (Problem(PATH, message, ProblemKind.FORBIDDEN),)
        return ()


def _deciding(text: Raw | None, request: Request) -> tuple[Object | None, object] | None:
    """What decides which objects are created: the spec, and the record of what was done."""
    if text is None:
        return None
    try:
        if request.is_later:  # there, an annotation has the namespace
            from dynamo_operator.admission.written import in_v1alpha1

            text = in_v1alpha1(text)
        reviewed = _REVIEWED.decode(text)
    except (*UNREADABLE, ValueError):  # of conversion
        return None
    annotations = reviewed.metadata.get("annotations") or {}
    return reviewed.spec, annotations.get(labels.REQUEST_RECORD)


_DRAIN_SECONDS: Final = 3.0
REVIEW_SECONDS: Final = 8.0
"""Seconds of a review, including its body. The API server waits ten seconds."""
CONVERSION_SECONDS: Final = 25.0
"""Seconds of a conversion, including its body. The API server waits 30 seconds."""
_MOST_LOGGED: Final = 10
_LONGEST: Final = 300
"""Most problems in a log entry, and characters of each."""
_EVERYWHERE: Final = (None, "", "0.0.0.0", "::")  # noqa: S104  # compared, not bound to
_log = structlog.get_logger(__name__)


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
        certificate = http.get_extra_info("peercert") or {}  # as `ssl.SSLObject.getpeercert` returns it
        attributes = [attribute for part in certificate.get("subject", ()) for attribute in part]
        if ("commonName", self.name) not in attributes:
            raise RequestRefused(HTTPStatus.FORBIDDEN, "the client certificate has another common name")


ANY_CLIENT: Final = Clients()

_REVIEW_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE"})


class WebhookMetrics:
    """Reviews by kind, operation and outcome, in `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        prefix, labels = f"{METRICS_PREFIX}_webhook", ("resource_type", "operation")
        text, buckets = "Duration of admission reviews.", _REVIEW_BUCKETS
        name = f"{prefix}_duration_seconds"
        self._seconds = Histogram(name, text, labels, buckets=buckets, registry=registry)
        text = "Completed admission reviews; result is allowed or denied."
        self._requests = Counter(f"{prefix}_requests", text, (*labels, "result"), registry=registry)
        text = "Refused objects, by the reason of the first problem."
        self._denials = Counter(f"{prefix}_denials", text, (*labels, "reason"), registry=registry)

    def reviewed(self, kind: str, operation: str, *, reason: str, seconds: float) -> None:
        """Count one review; `reason` "" means: allowed."""
        # Any client that reaches the port may send any word; it must not become a label value.
        label = operation if operation in _OPERATIONS else "other"
        self._seconds.labels(kind, label).observe(seconds)
        self._requests.labels(kind, label, "denied" if reason else "allowed").inc()
        if reason:
            self._denials.labels(kind, label, reason).inc()


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a path: bytes of a body, seconds of a request, and the bytes of all larger bodies."""

    body: int
    seconds: float
    bodies: ClientShares


class WebhookServer:
    """Reviews and converts objects until it is cancelled, and for `drain_seconds` more."""

    def __init__(
        self,
        address: tuple[str | None, int],
        certificate: Certificate,
        decisions: Decisions,
        metrics: WebhookMetrics,
        *,
        drain_seconds: float = _DRAIN_SECONDS,
        access_reviews: AccessReviews | None = None,
        clients: Clients = ANY_CLIENT,
    ) -> None:
        self._address = address
        self.certificate = certificate
        self._metrics = metrics
        self._drain_seconds = drain_seconds
        self._access_reviews = access_reviews
        self.decisions = decisions
        self.clients = clients
        # Concurrent reviews, and the bytes of large bodies, are limited for all clients together and shared
        # among their addresses: those of the API server are unknown, and no client may use up the limit.
        self._reviews = ClientShares(ALL_REVIEWS)
        self._admissions = Limits(LARGEST_BODY, REVIEW_SECONDS, ClientShares(ALL_BODIES))
        self._conversions = Limits(LARGEST_CONVERSION, CONVERSION_SECONDS, ClientShares(ALL_CONVERSIONS))
        # One thread for all conversions, which take turns in it: the event loop never waits for a long list.
        self._thread = ThreadPoolExecutor(1, "conversion")
        self._converter: Converter | None = None
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
        await self.certificate.loaded.wait()
        app = web.Application(client_max_size=LARGEST_CONVERSION)
        for rules in self.decisions.rules:
            app.router.add_post(
                path_of(rules.type_.KIND), self._handler(partial(self._review, rules), self._admissions)
            )
        app.router.add_post(CONVERSION_PATH, self._handler(self._convert, self._conversions))
        listener = ConnectionLimit(app)
        try:
            self.port = await listener.listen(self._address, self.certificate.listener)
            self.listening.set()
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            self._is_ending = True
            try:
                if self.listening.is_set():
                    await asyncio.sleep(self._drain_seconds)
            finally:
                await listener.close()
                self._thread.shutdown(wait=False, cancel_futures=True)

    def _handler(
        self, respond: Callable[[bytes, str], Awaitable[web.Response]], limits: Limits
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        """Answer the body of a client within these limits."""

        async def handle(http: web.Request) -> web.Response:
            client = client_of(http.remote)
            try:
                self.clients.check(http)
                size = _size(http, limits.body)
                with (
                    self._reviews.taken(client, 1),
                    limits.bodies.taken(client, size if size > SMALL_BODY else 0),
                ):
                    async with asyncio.timeout(limits.seconds):
                        response = await respond(await _body(http), client)
            except RequestRefused as error:
                response = web.Response(status=error.status, text=f"{error}\n")
                response.force_close()  # the rest of the body is not read
            except (ShareExhausted, TimeoutError):
                response = web.Response(status=503, text="too many requests in progress, retry later\n")
                response.force_close()
            except NotAReview as error:
                response = web.Response(status=400, text=f"{error}\n")
            if self._is_ending:
                response.force_close()
            return response

        return handle

    async def _convert(self, body: bytes, client: str) -> web.Response:  # noqa: ARG002  # any client may
        # Not imported where one version is served: it would be a tenth of the lines of a running operator.
        from dynamo_operator.versions.review import Conversion, Converter, NotAConversion, conversion_in

        self._converter = self._converter or Converter()
        try:
            conversion = Conversion(conversion_in(body), self._converter)
        except NotAConversion as error:
            raise NotAReview(str(error)) from error
        loop = asyncio.get_running_loop()
        while (answer := await loop.run_in_executor(self._thread, conversion.answer)) is None:
            pass
        if conversion.failure:
            _log.warning("conversion failed", error=conversion.failure)
        return web.Response(body=answer, content_type=JSON)

    async def _review(self, rules: Rules[Any], body: bytes, client: str) -> web.Response:
        started = time.perf_counter()
        request = request_in(body)
        decision = self.decisions.decide(rules, request)
        # Checked in excluded namespaces too: a tenant may write and delete the Lease that excludes one.
        is_request = rules.type_ is DynamoGraphDeploymentRequest
        if is_request and decision.allowed and self._access_reviews is not None:
            foreign = await self._access_reviews.problems(request, client)
            decision = replace(decision, problems=foreign, reason="forbidden") if foreign else decision
        kind = rules.type_.KIND.name
        seconds = time.perf_counter() - started
        self._metrics.reviewed(kind, request.operation, reason=decision.reason, seconds=seconds)
        if not decision.allowed:
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
        return web.Response(body=answer(request.uid, decision), content_type=JSON)
