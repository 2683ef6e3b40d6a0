"""Certificates and keys of one instance: its own authorities, a server certificate, clients, tokens.

Two CAs, as kubeadm has them: a client with a certificate for the API server must not thereby
hold one for etcd, where every Secret lies open.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=3650)
"""Longer than any local instance lives; nothing here renews certificates."""

_CLOCK_SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its private key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> None:
        """Writes `<name>.crt` and `<name>.key`, readable by the user only."""
        write_private(folder / f"{name}.crt", self.certificate)
        write_private(folder / f"{name}.key", self.key)

    @classmethod
    def read(cls, folder: Path, name: str) -> Self:
        """What `write` wrote."""
        return cls((folder / f"{name}.crt").read_bytes(), (folder / f"{name}.key").read_bytes())


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that can issue."""

    pair: Pair

    def issue(
        self, user: str, *, groups: Sequence[str] = (), hosts: Sequence[str | IPv4Address] = ()
    ) -> Pair:
        """A certificate for a client; with `hosts`, for a server that is also a client.

        Kubernetes reads the user from the common name and the groups from the organizations.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        own = x509.load_pem_x509_certificate(self.pair.certificate)
        own_key = _private_key(self.pair.key)
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = _unsigned(
            _name(user, groups), own.subject, key.public_key(), own_key.public_key()
        )
        if hosts:
            purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
            names = [
                x509.IPAddress(host) if isinstance(host, IPv4Address) else x509.DNSName(host)
                for host in hosts
            ]
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        builder = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        )
        return Pair(_pem(builder.sign(own_key, hashes.SHA256())), _key_pem(key))


def new_authority(name: str) -> Authority:
    """A self-signed authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(name, ())
    certificate = (
        _unsigned(subject, subject, key.public_key(), key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(Pair(_pem(certificate), _key_pem(key)))


def write_key_pair(folder: Path, name: str) -> None:
    """Writes `<name>.key` and `<name>.pub`, with which tokens are signed and checked."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    write_private(folder / f"{name}.key", _key_pem(key))
    write_private(folder / f"{name}.pub", public)


def write_private(path: Path, content: bytes) -> None:
    """Writes a file of mode 0600; at no moment can another user open it."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _unsigned(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False
        )
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(user: str, groups: Sequence[str]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise TypeError("the authority's key is not of the kind that this module writes")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
