"""What a server of ours is made of: a key with its certificate, a context that serves it, a socket."""

import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from ipaddress import ip_address

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dynamo_operator.kube.errors import ConfigError

SKEW = timedelta(hours=1)
"""How far the clock of a client may be behind ours."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate, with those that lead to its authority, and its private key; all of it PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Authority:
    """What certificates are signed with. It signs what it is asked to, then it is thrown away."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> bytes:
        """The certificate that others trust."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def issue(self, name: str, hosts: Sequence[str], *, now: datetime, life: timedelta) -> Pair:
        """A new key with a certificate for a server of these host names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        signer = self.certificate.public_key()
        if not isinstance(signer, ec.EllipticCurvePublicKey):  # pragma: no cover  # made below
            raise TypeError("an authority of another kind")
        certificate = (
            _unsigned(name, key, self.certificate.subject, signer, (now, life))
            .add_extension(_alternative_names(hosts), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        private = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return Pair(certificate.public_bytes(serialization.Encoding.PEM), private)


def new_authority(name: str, *, now: datetime, life: timedelta) -> Authority:
    """A new authority that signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _unsigned(name, key, _named(name), key.public_key(), (now, life))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_signs_certificates(), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def server_context(pair: Pair) -> ssl.SSLContext:
    """The context of a server with this certificate: TLS 1.2 or newer, HTTP/1.1.

    Raises:
        ssl.SSLError: certificate and key are not a pair, or cannot be read.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # OpenSSL takes keys from files only; this one is never on a disk.
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, pair.key.rstrip() + b"\n" + pair.certificate)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context


async def listen(
    runner: web.AppRunner, address: tuple[str | None, int], context: ssl.SSLContext | None
) -> int:
    """The port on which it listens now. Host None means every interface.

    Raises:
        ConfigError: the address cannot be had.
    """
    host, port = address
    try:
        await web.TCPSite(runner, host, port, ssl_context=context).start()
    except OSError as error:
        code = error.errno or 0  # below zero where a name has no address
        said = os.strerror(code) if code > 0 else error.strerror
        raise ConfigError(f"{host or ''}:{port}", f"cannot listen: {said}") from error
    return int(runner.addresses[0][1])


def _unsigned(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePublicKey,
    term: tuple[datetime, timedelta],
) -> x509.CertificateBuilder:
    now, life = term
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative_names(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_alternative_name(host) for host in hosts])


def _alternative_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
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
