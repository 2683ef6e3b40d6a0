"""Decide when a certificate is issued, staged and promoted, from the stored state. No I/O.

A renewal must not fail a single request. Clients trust a CA bundle (the API server that of the webhook
configuration), and notice changes of it with a delay. So a new certificate is *staged* first: the bundle
trusts its CA beside the old one, and the old certificate is still served. It is *promoted* when the bundle
has been published for a while. Until then, every served certificate and every bundle match, in whatever
order replicas and clients see the change.
"""

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from kube_runtime.serving.tls import Pair, new_authority

COMMON_NAME: Final = "dynamo-operator-webhook"
"""Independent of the release's name, as X.509 allows 64 characters. The host names are SANs."""

_LOCAL: Final = ("localhost", "127.0.0.1")
"""Hosts of an operator on the machine of its API server, in tests and development."""

_ODD_EXTENSIONS: Final = (
    x509.ExtensionNotFound,
    x509.DuplicateExtension,
    x509.UnsupportedGeneralNameType,
)


@dataclass(frozen=True, slots=True)
class Hosts:
    """The names of one Service. A certificate must cover `needed`."""

    needed: str
    all: tuple[str, ...]


def service_host(namespace: str, service: str) -> str:
    """The host name by which the API server calls a Service."""
    return f"{service}.{namespace}.svc"


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


def decide(
    stored: Stored | None,
    hosts: Hosts,
    *,
    terms: Terms,
    now: datetime,
    trusted_for: timedelta,
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
        return RotationStep(_stage(stored, hosts, terms, now), now + terms.settle, "staged")
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


def _stage(stored: Stored, hosts: Hosts, terms: Terms, now: datetime) -> Stored:
    issued = _issue(hosts, terms, now)
    return Stored(stored.serving, issued.authorities + _issuer_of(stored), issued.serving)


def _issuer_of(stored: Stored) -> bytes:
    """The CA of the served certificate only."""
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
