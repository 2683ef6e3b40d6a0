"""Issue, store and renew the certificates of the operator's servers, webhooks and metrics."""

import asyncio
import base64
import secrets
import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn, Protocol

import structlog
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from dynamo_operator.admission.configuration import Configuration, service_host
from dynamo_operator.admission.definitions import Definitions
from dynamo_operator.admission.server import WebhookServer
from dynamo_operator.settings import MetricsSettings
from dynamo_operator.shared.cluster import MetricsSecret, ServingSecret
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.manager import Health, Manager
from kube_runtime.errors import ConfigError, Conflict, Forbidden, Invalid, OperatorError
from kube_runtime.times import TokenBucket, loop_time
from kube_runtime.tls import Certificate, Pair, accept_lax_certificates, new_authority
from kube_runtime.types.meta import Key

COMMON_NAME: Final = "dynamo-operator-webhook"
"""Independent of the release's name, as X.509 allows 64 characters. The host names are SANs."""

_LOCAL: Final = ("localhost", "127.0.0.1")
"""Hosts of an operator on the machine of its API server, in tests and development."""

_ODD_EXTENSIONS: Final = (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names of one Service. A certificate must cover `needed`."""

    needed: str
    all: tuple[str, ...]


def hosts_of(namespace: str, service: str) -> Hosts:
    """The host names of a Service, for its certificate."""
    host = service_host(namespace, service)
    names = (service, f"{service}.{namespace}", host, f"{host}.cluster.local", *_LOCAL)
    return Hosts(host, names)


@dataclass(frozen=True, slots=True)
class Terms:
    """Lifetime of certificates, and the time for clients to load a new CA."""

    life: timedelta
    settle: timedelta

    @classmethod
    def of_life(cls, life: timedelta) -> "Terms":
        """The terms of the webhooks: a minute to settle, or less for certificates that live for minutes."""
        return cls(life, min(timedelta(minutes=1), life / 6))

    @property
    def renew_before(self) -> timedelta:
        """Time before expiry at which a certificate is replaced: the last third of its life."""
        return self.life / 3


@dataclass(frozen=True, slots=True)
class Stored:
    """Content of the Secret. `staged` will be served next.

    `authorities` is the CA bundle that clients trust, the newest CA first.
    """

    serving: Pair
    authorities: bytes
    staged: Pair | None = None


@dataclass(frozen=True, slots=True)
class RotationStep:
    """The content to store, None if unchanged, and when to decide again."""

    stored: Stored | None
    recheck_at: datetime
    action: str = ""


# A renewal must not fail a single request. Clients trust a CA bundle (the API server that of the
# webhook configuration), and notice changes of it with a delay. So a new certificate is *staged*
# first: the bundle trusts its CA beside the old one, and the old certificate is still served. It is
# *promoted* when the bundle has been published for a while. Until then, every served certificate
# and every bundle match, in whatever order replicas and clients see the change.
def decide(
    stored: Stored | None, hosts: Hosts, *, terms: Terms, now: datetime, trusted_for: timedelta
) -> RotationStep:
    """The next step of the rotation for these hosts.

    `trusted_for`: how long clients have trusted the stored bundle.
    """
    end = usable_until(stored.serving, stored.authorities, hosts, now) if stored else None
    if stored is None or end is None:
        issued = _issue(hosts, terms, now)
        return RotationStep(issued, now + terms.life - terms.renew_before, "made")
    renew_at = end - terms.renew_before
    if stored.staged is None:
        if now < renew_at:
            return RotationStep(None, renew_at)
        issued = _issue(hosts, terms, now)
        trusted = issued.authorities + _issuer_of(stored)
        staged = Stored(stored.serving, trusted, issued.serving)
        return RotationStep(staged, now + terms.settle, "staged")
    if usable_until(stored.staged, stored.authorities, hosts, now) is None:
        return RotationStep(Stored(stored.serving, _issuer_of(stored)), now, "dropped")
    if trusted_for < terms.settle:
        return RotationStep(None, now + terms.settle - trusted_for)
    return RotationStep(Stored(stored.staged, stored.authorities), now, "promoted")


def usable_until(pair: Pair, authorities: bytes, hosts: Hosts, now: datetime) -> datetime | None:
    """The expiry of a certificate; None if it is expired, for other hosts, or not trusted."""
    try:
        leaf = x509.load_pem_x509_certificates(pair.certificate)[0]
        trusted = x509.load_pem_x509_certificates(authorities)
        key = serialization.load_pem_private_key(pair.key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None
    if key.public_key() != leaf.public_key() or hosts.needed not in _hosts(leaf):
        return None
    issuer = next((authority for authority in trusted if _is_issued_by(authority, leaf)), None)
    if issuer is None:
        return None
    end = min(leaf.not_valid_after_utc, issuer.not_valid_after_utc)
    return end if leaf.not_valid_before_utc <= now < end else None


def _issue(hosts: Hosts, terms: Terms, now: datetime) -> Stored:
    authority = new_authority(f"{COMMON_NAME}-ca-{secrets.token_hex(4)}", now=now, life=terms.life)
    return Stored(authority.issue(COMMON_NAME, hosts.all, now=now, life=terms.life), authority.pem)


def _issuer_of(stored: Stored) -> bytes:
    leaf = x509.load_pem_x509_certificates(stored.serving.certificate)[0]
    trusted = x509.load_pem_x509_certificates(stored.authorities)
    issuers = [authority for authority in trusted if _is_issued_by(authority, leaf)]
    return b"".join(issuer.public_bytes(serialization.Encoding.PEM) for issuer in issuers)


def _is_issued_by(authority: x509.Certificate, leaf: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _hosts(leaf: x509.Certificate) -> list[str]:
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, *_ODD_EXTENSIONS):
        return []
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


RESYNC_SECONDS: Final = 30.0
"""The resync period; changes before that arrive as events."""

RETRY_SECONDS: Final = 2.0


FILES_SECONDS: Final = 10.0
"""Seconds between reads of the files. The kubelet takes a minute to update them."""

_RACE_SECONDS: Final = 1.0
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StoredCertificates:
    """The certificate to serve. `authorities` None: another controller writes the CA bundle."""

    pair: Pair
    authorities: bytes | None
    recheck_seconds: float


class CertificateStore(Protocol):
    """Provides and renews a certificate."""

    async def step(self, trusted_for: timedelta) -> StoredCertificates | None:
        """The current certificate; None until it has been issued.

        `trusted_for`: how long clients have trusted the authorities of the previous step.
        """
        ...


# Every replica renews the Secret. Each write carries the resourceVersion that it was decided from,
# so one replica wins, and the others read its certificate at their next check.
@dataclass(frozen=True, slots=True)
class SecretStore:
    """Issues and renews a certificate in a Secret."""

    client: Client
    cache: Cache
    key: Key
    hosts: Hosts
    terms: Terms
    type_: type[ServingSecret] = ServingSecret

    async def step(self, trusted_for: timedelta) -> StoredCertificates | None:
        """Take one step of the rotation."""
        secret = self.cache.get(self.type_, self.key)
        stored = _stored(secret.data) if secret else None
        now = datetime.now(UTC)
        decision = decide(stored, self.hosts, terms=self.terms, now=now, trusted_for=trusted_for)
        if decision.stored is not None:  # the next step follows when the cache has it
            await self._write(secret, decision.stored, decision.action)
            return None
        if stored is None:
            return None
        wait = max(decision.recheck_at - now, timedelta(seconds=_RACE_SECONDS))
        return StoredCertificates(stored.serving, stored.authorities, wait.total_seconds())

    async def _write(self, secret: ServingSecret | None, stored: Stored, action: str) -> None:
        data = _data(stored)
        try:
            if secret is None:
                metadata = {"namespace": self.key.namespace, "name": self.key.name, "labels": _LABELS}
                present = {name: value for name, value in data.items() if value is not None}
                body = self.type_.KIND.manifest(metadata, type="Opaque", data=present)
                await self.client.create(self.type_, body)
            else:
                version = {"resourceVersion": secret.metadata.resource_version}
                patch = {"metadata": version, "data": data}
                await self.client.merge_patch(self.type_, self.key, patch, uid=secret.metadata.uid)
        except Conflict:
            _log.info("another replica wrote first", secret=str(self.key))
        else:
            _log.info("certificate", what=action, secret=str(self.key))


def kept_in_secret(
    type_: type[ServingSecret], client: Client, cache: Cache, key: Key, service: str, terms: Terms
) -> tuple[Informer[ServingSecret], SecretStore]:
    """The store of a Service's certificate in the Secret of that key, and the informer of the Secret."""
    informer = Informer(type_, namespace=key.namespace, fields=f"metadata.name={key.name}")
    return informer, SecretStore(client, cache, key, hosts_of(key.namespace, service), terms, type_)


@dataclass(frozen=True, slots=True)
class FileStore:
    """Reads the certificate from files that others write: cert-manager, or an administrator."""

    folder: Path

    async def step(self, trusted_for: timedelta) -> StoredCertificates:  # noqa: ARG002  # only reads
        """Read the files again.

        Raises:
            ConfigError: they cannot be read.
        """
        files = (self.folder / "tls.crt", self.folder / "tls.key")
        try:
            certificate, key = [await asyncio.to_thread(file.read_bytes) for file in files]
        except OSError as error:
            raise ConfigError(str(error.filename), error.strerror or str(error)) from error
        return StoredCertificates(Pair(certificate, key), None, FILES_SECONDS)


def _stored(data: dict[str, str]) -> Stored | None:
    try:
        texts = {name: base64.b64decode(value, validate=True) for name, value in data.items()}
        staged = Pair(texts["next.crt"], texts["next.key"]) if "next.crt" in texts else None
        return Stored(Pair(texts["tls.crt"], texts["tls.key"]), texts["ca.crt"], staged)
    except (KeyError, ValueError):
        return None  # unusable


def _data(stored: Stored) -> dict[str, str | None]:
    """Encode the data of the Secret. None removes a key."""
    staged = stored.staged
    texts = {
        "tls.crt": stored.serving.certificate,
        "tls.key": stored.serving.key,
        "ca.crt": stored.authorities,
        "next.crt": staged.certificate if staged else None,
        "next.key": staged.key if staged else None,
    }
    return {name: None if text is None else base64.b64encode(text).decode() for name, text in texts.items()}


_LABELS: Final = {"app.kubernetes.io/managed-by": "dynamo-operator"}
_LIFE: Final = timedelta(days=90)
_SETTLE: Final = timedelta(minutes=10)
_UNVERIFIED_LIFE: Final = timedelta(days=3650)


class Rotation:
    """Renews a certificate in a loop on every replica, woken by changes of the objects that it depends on.

    The methods that subclasses replace are for the certificate of the metrics endpoint: its CA is in the same
    Secret, from which the Prometheus operator reads it with an unknown delay.
    """

    def __init__(
        self,
        store: CertificateStore,
        informers: tuple[Informer[Any], ...] = (),
        certificate: Certificate | None = None,
    ) -> None:
        self.certificate = certificate or Certificate()
        self._store = store
        self._informers = informers
        self._wake = asyncio.Event()
        self._authorities: bytes | None = None
        self._trusted_since: float | None = None
        self._problems: tuple[str, ...] = ()

    def join(self, manager: Manager) -> None:
        """Add the loop and its informers to the manager."""
        for informer in self._informers:
            manager.inform(informer)
        manager.serve(self)

    async def run(self) -> NoReturn:
        """Renew the certificate until cancelled."""
        for informer in self._informers:
            await informer.synced.wait()  # missing objects do not exist
            informer.store.subscribe(lambda _: self._wake.set())
        while True:
            self._wake.clear()
            wait = await self._turn()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    async def _turn(self) -> float:
        """Reconcile once. Returns the seconds until the next time."""
        try:
            stored = await self._store.step(self._trusted_for())
            if stored is None:
                return RETRY_SECONDS
            if stored.authorities != self._authorities:
                self._authorities, self._trusted_since = stored.authorities, None
                self._wake.set()  # decide again with the age of the new bundle
            await self._serve(stored)
        except (OperatorError, ssl.SSLError) as error:
            self._report((str(error),))
            return RESYNC_SECONDS if isinstance(error, Forbidden | Invalid) else RETRY_SECONDS
        problems = await self._check()
        self._report(problems)
        return RETRY_SECONDS if problems else min(stored.recheck_seconds, RESYNC_SECONDS)

    def _trusted_for(self) -> timedelta:
        """How long clients have been able to trust the current CAs, as observed."""
        authorities, now = self._authorities, loop_time()
        if authorities is None or not self._trusts(authorities):
            self._trusted_since = None
            return timedelta()
        if self._trusted_since is None:
            self._trusted_since = now
        return timedelta(seconds=now - self._trusted_since)

    def _trusts(self, authorities: bytes) -> bool:  # noqa: ARG002  # they are in the Secret itself
        """Whether these CAs are published."""
        return True

    async def _serve(self, stored: StoredCertificates) -> None:
        await self.certificate.load(stored.pair)

    async def _check(self) -> tuple[str, ...]:
        """Problems that keep clients from calling this process."""
        return ()

    def _report(self, problems: tuple[str, ...]) -> None:
        if problems and problems != self._problems:
            _log.warning("certificate of the metrics", problem=problems[0])
        self._problems = problems


class UnverifiedStore:
    """Issues one certificate for the lifetime of the process. No scraper can verify it."""

    def __init__(self) -> None:
        self._issued: StoredCertificates | None = None

    async def step(self, trusted_for: timedelta) -> StoredCertificates:  # noqa: ARG002  # never renewed
        """Issue it, once."""
        if self._issued is None:
            now, life = datetime.now(UTC), _UNVERIFIED_LIFE
            authority = await asyncio.to_thread(new_authority, "dynamo-operator metrics", now=now, life=life)
            pair = await asyncio.to_thread(authority.issue, "localhost", ["localhost"], now=now, life=life)
            self._issued = StoredCertificates(pair, None, life.total_seconds())
        return self._issued


def metrics_certificate(settings: MetricsSettings, client: Client, cache: Cache, namespace: str) -> Rotation:
    """The certificate as configured: from files, from a Secret in `namespace`, or unverified."""
    if settings.certificate_folder:
        return Rotation(FileStore(Path(settings.certificate_folder)))
    if not settings.secret_name:
        return Rotation(UnverifiedStore())
    key, terms = Key(namespace, settings.secret_name), Terms(_LIFE, _SETTLE)
    informer, store = kept_in_secret(MetricsSecret, client, cache, key, settings.service_name, terms)
    return Rotation(store, (informer,))


_HANDSHAKE_SECONDS: Final = 5.0
_STARTING: Final = ("starting",)
REPAIRS: Final = 5
REPAIR_SECONDS: Final = 60.0
"""A CA bundle that others remove is repaired so many times, and once more after each of these periods."""


# Each turn of the loop reconciles Secret, configuration and server, and so repairs what others
# deleted or changed. Ready means that a TLS connection to this process succeeded with each host
# name and CA bundle that the API server will use.
class CertificateRotation(Rotation):
    """Renews the certificate and the CA bundle of the webhooks, also of those that convert."""

    def __init__(
        self,
        store: CertificateStore,
        configuration: Configuration,
        definitions: Definitions,
        server: WebhookServer,
        informers: tuple[Informer[Any], ...],
    ) -> None:
        super().__init__(store, informers, server.certificate)
        self._configuration = configuration
        self._definitions = definitions
        self.server = server
        self._problems = _STARTING
        self._written: bytes | None = None
        self._repairs = TokenBucket(REPAIRS, at=0.0)
        self._is_repaired = True

    def join(self, manager: Manager) -> None:
        """Add the server, the loop and its informers to the manager."""
        manager.serve(self.server)
        super().join(manager)

    async def run(self) -> NoReturn:
        """Renew the certificate until cancelled."""
        self._definitions.subscribe(lambda _: self._wake.set())
        await super().run()

    async def _turn(self) -> float:
        try:
            await self._definitions.refresh()
        except OperatorError as error:
            self._report((str(error),))
            return RETRY_SECONDS
        return await super()._turn()

    def ready(self) -> Health:
        """Ready if the API server can call the webhooks of this process."""
        problems, authorities = self._problems, self._authorities
        if self._definitions.is_behind():
            problems += ("a CRD has not been read",)
        elif authorities is not None and not self._definitions.trusts(authorities):
            problems += ("a CRD does not have the caBundle",)
        return Health(tuple(f"webhooks: {problem}" for problem in problems))

    def _trusts(self, authorities: bytes) -> bool:
        return self._configuration.trusts(authorities) and self._definitions.trusts(authorities)

    async def _serve(self, stored: StoredCertificates) -> None:
        clients = self.server.clients
        try:
            await self.certificate.load(stored.pair, await clients.authorities())
        except ssl.SSLError as error:
            source = "webhook certificate" + (f" or client CA {clients.file}" if clients.file else "")
            raise ConfigError(source, f"cannot be used: {error.reason or error}") from error
        if stored.authorities is not None and not self._trusts(stored.authorities):
            is_repair = stored.authorities == self._written
            if is_repair and not self._repairs.take(REPAIRS, REPAIR_SECONDS, loop_time()):
                if self._is_repaired:
                    _log.warning("another client keeps removing the caBundle of the webhooks")
                self._is_repaired = False
                raise OperatorError("another client keeps removing the caBundle")
            self._is_repaired = True
            await self._configuration.trust(stored.authorities)
            await self._definitions.trust(stored.authorities)
            self._written = stored.authorities
        elif stored.authorities is not None:
            await self._definitions.trust(stored.authorities)

    async def _check(self) -> tuple[str, ...]:
        if self._configuration.entries() is None:
            return (f"no ValidatingWebhookConfiguration {self._configuration.name}",)
        reviews = self._configuration.callers()
        if not reviews:
            return (f"no entry of ours in {self._configuration.name}",)
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                await self.server.listening.wait()
        except TimeoutError:
            return _STARTING
        callers = sorted(reviews | self._definitions.callers())
        errors = [await self._call(host, bundle) for host, bundle in callers]
        return tuple(filter(None, errors))

    async def _call(self, host: str, bundle: str) -> str:
        """Connect like the API server; return the error, "" if it succeeds."""
        try:
            text = base64.b64decode(bundle, validate=True).decode("ascii", "backslashreplace")
            context = ssl.create_default_context(cadata=text or None)
        except (ValueError, ssl.SSLError) as error:
            return f"TLS to {host}: the caBundle is not readable: {error}"
        accept_lax_certificates(context)
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                _, writer = await asyncio.open_connection(
                    *self.server.own_address, ssl=context, server_hostname=host
                )
        except (OSError, ValueError) as error:
            return f"TLS to {host}: {error}"
        writer.transport.abort()
        return ""

    def _report(self, problems: tuple[str, ...]) -> None:
        is_new, self._problems = problems != self._problems, problems
        if is_new and problems:
            _log.warning("webhooks are not ready", problems=[*self.ready().problems])
        elif is_new:
            _log.info("webhooks are ready", port=self.server.port)
