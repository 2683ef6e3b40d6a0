"""Credentials, and the TLS context made from them.

OpenSSL reads a client key from a file only, so the key is in a private directory while it is loaded.
"""

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kube_runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """The address of the API server, how to trust it, and the credentials to present."""

    server: str
    """Its URL, without a slash at the end."""
    headers: Mapping[str, str] = field(repr=False)
    """The headers that authenticate a request."""
    tls: ssl.SSLContext | None = None
    """None for plain HTTP."""
    tls_server_name: str | None = None
    """The name in the server's certificate, if it is not the host of the URL."""
    proxy: str | None = None
    """URL of the proxy, if there is one."""


class Credentials(Protocol):
    """A source of `ClientConfig`, which may change over time."""

    async def config(self) -> ClientConfig:
        """The configuration for the next request, renewed first if it is about to expire.

        Raises:
            ConfigError: they cannot be renewed.
        """
        ...

    async def refresh(self) -> None:
        """Renew the credentials, because the API server has just refused them.

        Raises:
            ConfigError: they cannot be renewed.
        """
        ...


def bearer(token: str, source: str) -> str:
    """The Authorization header for a token; strips the newline at the end of a file.

    Raises:
        ConfigError: the text cannot be a token; names `source`.
    """
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(source, "the token is empty or has characters that no token has")
    return f"Bearer {token}"


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """PEM of the trusted CAs, and of the client certificate with its key.

    None means: the CAs of the system; no client certificate.
    """

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    verify: bool = True

    def context(self, source: str) -> ssl.SSLContext:
        """Build the TLS context. It reads and writes files: not for the event loop.

        Raises:
            ConfigError: not PEM, or key and certificate do not match; names `source`.
        """
        try:
            context = ssl.create_default_context(
                cadata=self.authorities.decode("ascii", "ignore") if self.authorities else None
            )
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(source, f"unusable certificate authority: {error}") from error
        # Python 3.13 turned this on. Some clusters have CAs that fail it, and kubectl accepts them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate and self.key:
            _load_pair(context, self.certificate, self.key, source)
        elif self.certificate or self.key:
            raise ConfigError(source, "a client certificate and its key come together")
        return context


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes, source: str) -> None:
    with tempfile.TemporaryDirectory(prefix="client-certificate-") as folder:  # 0700
        pair = Path(folder, "pair.pem")
        pair.touch(mode=0o600)
        pair.write_bytes(key.rstrip() + b"\n" + certificate)
        try:
            # Without a password, OpenSSL would prompt for one.
            context.load_cert_chain(pair, password="")
        except (ssl.SSLError, ValueError) as error:
            message = f"unusable client certificate or key: {error}"
            raise ConfigError(source, message) from error
