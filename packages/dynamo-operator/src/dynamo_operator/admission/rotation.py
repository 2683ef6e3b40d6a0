"""Keep the webhooks callable: renew the certificate, write its CA bundle, and test the connection.

Each turn of the loop reconciles Secret, configuration and server, and so repairs what others deleted or
changed. Ready means that a TLS connection to this process succeeded with each host name and CA bundle that
the API server will use.
"""

import asyncio
import base64
import binascii
import ssl
from datetime import timedelta
from typing import Any, Final, NoReturn

import structlog

from dynamo_operator.admission.identity import OperatorIdentity
from dynamo_operator.admission.server import ANY_CLIENT, Clients, WebhookServer
from dynamo_operator.admission.webhook_configuration import Caller, Configuration
from dynamo_operator.certificates.rotation import RESYNC_SECONDS, RETRY_SECONDS, Rotation
from dynamo_operator.certificates.store import CertificateStore, StoredCertificates
from kube_runtime.cache.informer import Informer
from kube_runtime.clock import loop_time
from kube_runtime.controller.manager import Health
from kube_runtime.errors import ConfigError, Forbidden, Invalid, OperatorError
from kube_runtime.serving.tls import Certificate, accept_lax_certificates

_HANDSHAKE_SECONDS: Final = 5.0
_STARTING: Final = ("webhooks: starting",)
_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0
_CALM_SECONDS: Final = 600.0
"""Seconds without a repair after which the backoff resets."""
_COMPETING: Final = 5
"""Consecutive repairs after which the log reports a competing writer."""
_log = structlog.get_logger()


class PatchBackoff:
    """Delays repairs of the CA bundle with exponential backoff."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._in_a_row = 0

    async def turn(self) -> None:
        """Wait until the next repair is allowed, and count it."""
        now = loop_time()
        if now - self._last > _CALM_SECONDS:
            self._in_a_row = 0
        if self._in_a_row:
            wait = min(_FIRST_SECONDS * 2 ** (self._in_a_row - 1), _LONGEST_SECONDS)
            await asyncio.sleep(max(0.0, self._last + wait - now))
        self._in_a_row = min(self._in_a_row + 1, 10)
        if self._in_a_row == _COMPETING:
            _log.warning("another client keeps removing the caBundle of the webhooks")
        self._last = loop_time()


class CertificateRotation(Rotation):
    """Renews the certificate and the CA bundle of the webhooks."""

    def __init__(
        self,
        identity: OperatorIdentity,
        store: CertificateStore,
        configuration: Configuration,
        server: WebhookServer,
        certificate: Certificate,
        informers: tuple[Informer[Any], ...],
        clients: Clients = ANY_CLIENT,
    ) -> None:
        super().__init__(informers)
        self._clients = clients
        self._identity = identity
        self._store = store
        self._configuration = configuration
        self._server = server
        self.certificate = certificate
        self._problems: tuple[str, ...] = _STARTING
        self._authorities: bytes | None = None
        self._trusted_since: float | None = None
        self._written: bytes | None = None
        self._backoff = PatchBackoff()

    def ready(self) -> Health:
        """Ready if the API server can call the webhooks of this process."""
        return Health(self._problems)

    async def run(self) -> NoReturn:
        """Learn the operator's user name, then renew the certificate until cancelled."""
        await self._identity.ask()
        await super().run()

    async def _turn(self) -> float:
        try:
            stored = await self._step()
            if stored is None:
                return RETRY_SECONDS
            await self._serve(stored)
        except OperatorError as error:
            self._report((f"webhooks: {error}",))
            return RESYNC_SECONDS if isinstance(error, Forbidden | Invalid) else RETRY_SECONDS
        problems = await self._check()
        self._report(problems)
        return RETRY_SECONDS if problems else min(stored.recheck_seconds, RESYNC_SECONDS)

    async def _step(self) -> StoredCertificates | None:
        stored = await self._store.step(self._trusted_for())
        if stored is not None and stored.authorities != self._authorities:
            self._authorities, self._trusted_since = stored.authorities, None
            self._wake.set()  # decide again with the age of the new bundle
        return stored

    def _trusted_for(self) -> timedelta:
        """How long the current CAs have been in the configuration, as observed."""
        authorities, now = self._authorities, loop_time()
        if authorities is None or not self._configuration.trusts(authorities):
            self._trusted_since = None
            return timedelta()
        if self._trusted_since is None:
            self._trusted_since = now
        return timedelta(seconds=now - self._trusted_since)

    async def _serve(self, stored: StoredCertificates) -> None:
        """Serve the certificate, and write the CA bundle."""
        try:
            await self.certificate.load(stored.pair, await self._clients.authorities())
        except ssl.SSLError as error:
            file = self._clients.file
            source = "webhook certificate" + (f" or client CA {file}" if file else "")
            raise ConfigError(source, f"cannot be used: {error.reason or error}") from error
        if stored.authorities is not None and not self._configuration.trusts(stored.authorities):
            if stored.authorities == self._written:
                await self._backoff.turn()
            await self._configuration.trust(stored.authorities)
            self._written = stored.authorities

    async def _check(self) -> tuple[str, ...]:
        """Problems that keep the API server from calling this process."""
        if self._configuration.entries() is None:
            return (f"webhooks: no ValidatingWebhookConfiguration {self._configuration.name}",)
        callers = sorted(self._configuration.callers(), key=lambda caller: caller.host)
        if not callers:
            return (f"webhooks: no entry of ours in {self._configuration.name}",)
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                await self._server.listening.wait()
        except TimeoutError:
            return _STARTING
        errors = [await self._call(caller) for caller in callers]
        return tuple(f"webhooks: {error}" for error in errors if error)

    async def _call(self, caller: Caller) -> str:
        """Connect like the API server; return the error, "" if it succeeds."""
        try:
            context = _trusting(caller.bundle)
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                _, writer = await asyncio.open_connection(
                    *self._server.own_address, ssl=context, server_hostname=caller.host
                )
        except (OSError, ValueError) as error:
            return f"TLS to {caller.host}: {error}"
        writer.transport.abort()
        return ""

    def _report(self, problems: tuple[str, ...]) -> None:
        if problems != self._problems:
            if problems:
                _log.warning("webhooks are not ready", problems=list(problems))
            else:
                _log.info("webhooks are ready", port=self._server.port)
        self._problems = problems


def _trusting(bundle: str) -> ssl.SSLContext:
    """An SSL context of a client that trusts the CA bundle of a configuration.

    Raises:
        ValueError: the bundle is not PEM in base64.
    """
    try:
        text = base64.b64decode(bundle, validate=True).decode("ascii")
        context = ssl.create_default_context(cadata=text or None)
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise ValueError(f"the caBundle is not readable: {error}") from error
    accept_lax_certificates(context)
    return context
