"""TLS for servers: keys, certificates and contexts."""

import asyncio
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import IPv4Address, ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SKEW = timedelta(hours=1)
"""Tolerated clock skew of clients."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate with its chain, and its private key, as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA with its private key, in memory."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> bytes:
        """The certificate as PEM."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(
        self,
        name: str,
        hosts: Sequence[str | IPv4Address],
        *,
        now: datetime,
        life: timedelta,
        groups: Sequence[str] = (),
        is_client: bool = False,
    ) -> Pair:
        """Create a key and a certificate for a server with these hosts and addresses, a client, or both.

        Kubernetes reads the user of a client from the common name, and its groups from the organizations.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject, signer = _named(name, groups), self.key.public_key()
        builder = _unsigned(subject, key, self.certificate.subject, signer, (now, life))
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH] if is_client else []
        if hosts:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            names = x509.SubjectAlternativeName(map(_alternative_name, hosts))
            builder = builder.add_extension(names, critical=False)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))


def new_authority(name: str, *, now: datetime, life: timedelta) -> Authority:
    """Create a self-signed CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _unsigned(_named(name), key, _named(name), key.public_key(), (now, life))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def server_context(pair: Pair, client_authorities: bytes | None = None) -> ssl.SSLContext:
    """The context of a server with this certificate: TLS 1.2 or newer, HTTP/1.1.

    With `client_authorities`, as PEM, clients need a certificate of one of these CAs. Raises ssl.SSLError if
    certificate and key do not match, or cannot be read.
    """
    context = _bare_context()
    if client_authorities is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        # Comments between certificates may have any letters; Python takes ASCII only.
        context.load_verify_locations(cadata=client_authorities.decode("ascii", "backslashreplace"))
    # OpenSSL reads keys from files only; this one is never on a disk.
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, pair.key.rstrip() + b"\n" + pair.certificate)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context


class Certificate:
    """The current certificate of a server, which may be replaced at any time; none at first.

    `asks_clients`: clients need a certificate, too, of the CAs passed to `load`.
    """

    def __init__(self, *, asks_clients: bool = False) -> None:
        self.pair: Pair | None = None
        self._client_authorities: bytes | None = None
        self.loaded = asyncio.Event()
        self.expires = float("nan")
        """Expiry in seconds since 1970; NaN without a certificate."""
        self._context: ssl.SSLContext | None = None
        self.listener = _bare_context()
        """The context to listen with. It has no certificate itself; each handshake gets the current one."""
        self.listener.sni_callback = self._choose
        # The verification mode of a connection is that of the listener, not of the context that `_choose`
        # sets.
        if asks_clients:
            self.listener.verify_mode = ssl.CERT_REQUIRED

    async def load(self, pair: Pair, client_authorities: bytes | None = None) -> None:
        """Replace the certificate, and the CAs of client certificates.

        Raises:
            ssl.SSLError: they cannot be used; the previous ones stay.
        """
        if (pair, client_authorities) == (self.pair, self._client_authorities):
            return
        self._context = await asyncio.to_thread(server_context, pair, client_authorities)
        self._client_authorities = client_authorities
        try:  # the first certificate of the chain is the server's
            first = x509.load_pem_x509_certificate(pair.certificate)
            self.expires = first.not_valid_after_utc.timestamp()
        except ValueError:  # OpenSSL accepts some certificates that this library does not
            self.expires = float("nan")
        self.pair = pair
        self.loaded.set()

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _from: ssl.SSLContext
    ) -> int | None:
        if self._context is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._context
        return None


def accept_lax_certificates(context: ssl.SSLContext) -> None:
    """Verify certificates as Go programs do, also those without key identifiers.

    Python 3.13 refuses them by default; the certificate authorities of many clusters issue them.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT


def _bare_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    accept_lax_certificates(context)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """A private key as unencrypted PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _unsigned(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePublicKey,
    term: tuple[datetime, timedelta],
) -> x509.CertificateBuilder:
    now, life = term
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _named(name: str, groups: Sequence[str] = ()) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative_name(host: str | IPv4Address) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(str(host))
