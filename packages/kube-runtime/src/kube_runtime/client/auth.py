"""What credentials are, and how they become a TLS context.

OpenSSL takes a client key from a file only: it is written to a private directory for the moment of loading.
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
    """Where the API server is, how to trust it, and who we are.

    Two that are equal get the same answer: there is no use in asking again with the other one.
    """

    server: str
    """Its URL, without a slash at its end."""
    headers: Mapping[str, str] = field(repr=False)
    """Those that authenticate a request."""
    tls: ssl.SSLContext | None = None
    """None means: plain http."""
    tls_server_name: str | None = None
    """The name that the server's certificate must have. None means: the host of the URL."""
    proxy: str | None = None
    """URL of the proxy on the way, if there is one."""


class Credentials(Protocol):
    """Where a `ClientConfig` comes from, all of which may change while we run."""

    async def config(self) -> ClientConfig:
        """What to send a request with, renewed first if it is about to expire.

        Raises:
            ConfigError: it cannot be renewed.
        """
        ...

    async def refresh(self) -> None:
        """Renew what can be renewed: the API server has just refused it.

        Raises:
            ConfigError: it cannot be renewed.
        """
        ...


def bearer(token: str, source: str) -> str:
    """The Authorization header for a token, without the newline that files end with.

    Raises:
        ConfigError: this cannot be a token. Names `source`.
    """
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(source, "the token is empty or has characters that no token has")
    return f"Bearer {token}"


@dataclass(frozen=True, slots=True)
class TlsMaterial:
    """PEM of the trusted authorities, and of our certificate with its key.

    None means: the authorities of the system; no client certificate.
    """

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    verify: bool = True

    def context(self, source: str) -> ssl.SSLContext:
        """The TLS context. Reads and writes files: not for the event loop.

        Raises:
            ConfigError: not PEM, or key and certificate do not belong together. Names `source`.
        """
        try:
            context = ssl.create_default_context(
                cadata=self.authorities.decode("ascii", "ignore") if self.authorities else None
            )
        except (ssl.SSLError, ValueError) as error:
            raise ConfigError(source, f"unusable certificate authority: {error}") from error
        # Python 3.13 turned this on. Clusters have authorities that fail it, and kubectl takes them.
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
            # Without a password, OpenSSL would ask for one on the terminal.
            context.load_cert_chain(pair, password="")
        except (ssl.SSLError, ValueError) as error:
            message = f"unusable client certificate or key: {error}"
            raise ConfigError(source, message) from error
