"""Credentials from kubeconfig files, with kubectl's rules of precedence.

Everything may change over time: token files and certificates are replaced, plugins and login servers issue
short-lived tokens. So a renewal reads everything again, in a thread; connections are kept while the TLS
material is the same.
"""

import asyncio
import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from kube_runtime.client.auth import ClientConfig, TlsMaterial
from kube_runtime.client.kubeconfig_file import Cluster, Named, User, choose
from kube_runtime.client.login import Login, login_of
from kube_runtime.errors import ConfigError


class Kubeconfig:
    """Credentials of one context of a list of kubeconfig files."""

    def __init__(self, paths: Sequence[Path], context: str | None = None) -> None:
        self._paths = tuple(paths)
        self._context = context
        self._loaded: _Loaded | None = None
        self._loading = asyncio.Lock()

    async def config(self) -> ClientConfig:
        """The configuration for the next request, renewed first if it is about to expire.

        Raises:
            ConfigError: a file or a login cannot be used.
        """
        return (await self._current()).config

    async def namespace(self) -> str:
        """The namespace of the context; "" if it names none.

        Raises:
            ConfigError: a file or a login cannot be used.
        """
        return (await self._current()).namespace

    async def refresh(self) -> None:
        """Read everything again and log in again.

        Raises:
            ConfigError: a file or a login cannot be used.
        """
        async with self._loading:
            self._loaded = await asyncio.to_thread(self._load)

    async def _current(self) -> "_Loaded":
        async with self._loading:  # one login for all requests that wait
            if self._loaded is None or self._loaded.is_due(datetime.now(UTC)):
                self._loaded = await asyncio.to_thread(self._load)
            return self._loaded

    def _load(self) -> "_Loaded":
        before = self._loaded
        cluster, user, namespace = choose(self._paths, self._context)
        server = _server(cluster)
        login = login_of(cluster, user)
        material = _material(cluster, user, login)
        tls = None
        if server.startswith("https:"):
            is_same = before is not None and before.material == material
            tls = before.config.tls if before and is_same else material.context(str(user.path))
        headers = {"Authorization": login.authorization} if login.authorization else {}
        config = ClientConfig(server, headers, tls, cluster.value.tls_server_name, _proxy(cluster))
        return _Loaded(config, material, namespace, login.due)


@dataclass(frozen=True, slots=True)
class _Loaded:
    config: ClientConfig
    material: TlsMaterial
    namespace: str
    due: datetime | None

    def is_due(self, now: datetime) -> bool:
        """Whether it is time to renew."""
        return self.due is not None and now >= self.due


def _server(cluster: Named[Cluster]) -> str:
    server = (cluster.value.server or "").rstrip("/")
    url = _url(server)
    if url is None or url.scheme not in ("https", "http") or not url.hostname:
        message = f"cluster {cluster.name}: server {_shown(server)!r} is not an http or https URL"
        raise ConfigError(str(cluster.path), message)
    if "@" in url.netloc:
        message = (
            f"cluster {cluster.name}: server {_shown(server)!r} has a user name or a password in it"
        )
        raise ConfigError(str(cluster.path), f"{message}; put them under users")
    return server


def _proxy(cluster: Named[Cluster]) -> str | None:
    proxy = cluster.value.proxy_url or None
    if proxy is None:
        return None
    url = _url(proxy)
    if url is None or url.scheme not in ("http", "https") or not url.hostname:
        message = f"cluster {cluster.name}: proxy-url {_shown(proxy)!r}"
        raise ConfigError(str(cluster.path), f"{message}: only http and https are supported")
    return proxy


def _url(text: str) -> SplitResult | None:
    """The parts of a URL; None if the text is not a URL."""
    try:
        url = urlsplit(text)
        _ = url.port  # checked on access
    except ValueError:
        return None
    return url


def _shown(text: str) -> str:
    """A URL for an error message, without user name and password."""
    scheme, slashes, rest = text.rpartition("//")
    return f"{scheme}{slashes}***@{rest.rpartition('@')[2]}" if "@" in rest else text


def _material(cluster: Named[Cluster], user: Named[User], login: Login) -> TlsMaterial:
    trust, pair = cluster.value, user.value
    certificate = login.certificate or _pem(
        user, "client-certificate", pair.client_certificate, pair.client_certificate_data
    )
    key = login.key or _pem(user, "client-key", pair.client_key, pair.client_key_data)
    authorities = _pem(
        cluster,
        "certificate-authority",
        trust.certificate_authority,
        trust.certificate_authority_data,
    )
    return TlsMaterial(authorities, certificate, key, verify=not trust.insecure_skip_tls_verify)


def _pem(
    entry: Named[Cluster] | Named[User], field: str, file: str | None, data: str | None
) -> bytes | None:
    if data:
        try:
            return base64.b64decode(data, validate=False)
        except (binascii.Error, ValueError) as error:
            message = f"{entry.name}: {field}-data is not base64: {error}"
            raise ConfigError(str(entry.path), message) from error
    return entry.content(field, file) if file else None
