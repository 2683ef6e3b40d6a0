"""A certificate made at start, for scrapers that want TLS and do not verify."""

import os
import ssl
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_LIFE = timedelta(days=3650)
_SKEW = timedelta(hours=1)
"""How far the clock of a scraper may be behind ours."""


def self_signed_context() -> ssl.SSLContext:
    """A server's TLS context with a new key and a certificate for `localhost` signed by itself."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # OpenSSL takes keys from files only; this one is never on a disk.
    descriptor = os.memfd_create("certificate")
    try:
        os.write(descriptor, _pem())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context


def _pem() -> bytes:
    """Key and certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + _LIFE)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return private + certificate.public_bytes(serialization.Encoding.PEM)
