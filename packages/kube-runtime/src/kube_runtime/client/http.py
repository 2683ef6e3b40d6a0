"""The transport to a real API server, on aiohttp, and its credentials.

aiohttp has some twenty errors for a missing response; each becomes one line that names what to check.
"""

import asyncio
import math
import socket
import ssl
import tempfile
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
from msgspec.structs import replace
from yarl import URL

from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import ConfigError, NoAnswer, Unreachable, Untrusted
from kube_runtime.times import loop_time


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


# OpenSSL reads a client key from a file only, so the key is in a private directory while it is
# loaded.
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


USER_AGENT = "kube-runtime"
CONNECT_SECONDS = 10.0
KEEP_SECONDS = 75.0
"""How long an idle connection is kept, for example for an autoscaler's next change. The API server closes its
idle ones after 90 s (`IdleTimeout` in k8s.io/apiserver, secure_serving.go)."""
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""The kernel closes a connection to a vanished peer after a minute: 30 s of silence, then 3 probes. Options
that a platform lacks keep its default."""
TLS_BUFFER_BYTES = 32 * 1024
"""Size of a TLS connection's receive buffer: two records. A buffer that was filled once stays allocated, here
and in OpenSSL. With asyncio's 256 KiB memory grew for hours (docs/performance.md)."""
_UNAUTHORIZED = 401


class AiohttpTransport:
    """One connection pool to an API server. Use it as an async context manager."""

    def __init__(
        self,
        credentials: Credentials,
        *,
        user_agent: str = USER_AGENT,
        headers: Sequence[tuple[str, str]] = (),
        request_seconds: float | None = None,
    ) -> None:
        self.credentials = credentials
        self._headers = (("Accept-Encoding", "gzip"), ("User-Agent", user_agent), *headers)
        self._request_seconds = request_seconds
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._renewing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections; running watches and later requests end with `Unreachable`."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, request: Request) -> Answer:
        """Send a request; after a 401 once more, if the credentials could be renewed.

        Raises:
            Unreachable: no response, or no credentials.
        """
        if self._request_seconds is not None:
            seconds = min(request.timeout_seconds or math.inf, self._request_seconds)
            request = replace(request, timeout_seconds=seconds)
        try:
            config = await self.credentials.config()
            answer = await self._exchange(request, config)
            if answer.status != _UNAUTHORIZED:
                return answer
            try:
                renewed = await self._renew(config)
            except BaseException:
                await answer.aclose()
                raise
        except ConfigError as error:
            # The credentials worked before, so this may pass: a login service is down, a file is being
            # written.
            raise Unreachable(f"credentials: {error}") from error
        if renewed == config:
            return answer
        await answer.aclose()
        return await self._exchange(request, renewed)

    async def _renew(self, refused: ClientConfig) -> ClientConfig:
        async with self._renewing:
            # Many requests are refused at once when a token expires; the first one renews it.
            if await self.credentials.config() == refused:
                await self.credentials.refresh()
            return await self.credentials.config()

    async def _exchange(self, request: Request, config: ClientConfig) -> Answer:
        server = config.server
        if self._closed:
            raise Unreachable(f"{server}: the transport is closed")
        headers = {**config.headers, "Accept": request.accept}
        if request.body is not None:
            headers = {**headers, "Content-Type": request.content_type}
        query = _query(*request.query.items()) if request.query else ""
        start = "&" if "?" in request.path else "?"
        url = f"{_base(server)}{request.path}{query and start}{query}"
        try:
            response = await self._pool().request(
                request.method,
                URL(url, encoded=True),
                data=request.body,
                headers=headers,
                allow_redirects=False,  # credentials go to this server only
                timeout=_timeout(request.timeout_seconds),
                ssl=config.tls if config.tls is not None else True,
                server_hostname=config.tls_server_name,
                proxy=config.proxy,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _failure(error, server, request) from error
        body = _Body(response, server, request)
        return Answer(response.status, response.headers, body, partial(_end, response))

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None:
            SSLProtocol.max_size = TLS_BUFFER_BYTES  # global: there is no option per connection
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0,  # watches keep theirs
                    keepalive_timeout=KEEP_SECONDS,
                    socket_factory=_socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers=self._headers,
                read_bufsize=2**18,
            )
        return self._session


@cache
def _base(server: str) -> str:
    return str(URL(server)).rstrip("/")


@lru_cache(maxsize=256)  # most requests have one of a few queries
def _query(*parameters: tuple[str, str]) -> str:
    return urlencode(parameters, errors="replace", quote_via=quote)


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, type_, protocol, _, _ = address
    opened = socket.socket(family, type_, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        if option := getattr(socket, name, None):
            opened.setsockopt(socket.IPPROTO_TCP, option, value)
    return opened


@cache
def _timeout(seconds: float | None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=seconds, connect=CONNECT_SECONDS)


class _Body:
    """The chunks of a response. Not a generator, which would need to be closed."""

    def __init__(self, response: aiohttp.ClientResponse, server: str, request: Request) -> None:
        self._chunks = response.content.iter_any()
        self._server = server
        self._request = request

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._chunks)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(str(_failure(error, self._server, self._request))) from error
        except RuntimeError as error:  # aiohttp raises this for a connection that we closed
            raise Unreachable(f"{self._server}: the connection was closed") from error


def _end(response: aiohttp.ClientResponse) -> None:
    connection = response.connection  # none if the body was read to the end
    # Without a TLS shutdown: that needs a response, which a process that ends does not wait for.
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _failure(error: Exception, server: str, request: Request) -> Unreachable:
    """The error for a request without a response, or without all of it: what went wrong, in one line."""
    asked, type_ = f"{request.method} {request.path}", Unreachable
    match error:
        case aiohttp.ClientConnectorCertificateError(host=host, certificate_error=cause):
            type_ = Untrusted
            detail = getattr(cause, "verify_message", "") or str(cause)
            line = f"the certificate of {host} is not trusted: {detail}"
        case aiohttp.ClientProxyConnectionError(host=host, port=port):
            line = f"the proxy {host}:{port} cannot be reached: {error.os_error}"
        case aiohttp.ClientConnectorDNSError(host=host):
            line = f"the name {host} cannot be resolved"
        case aiohttp.ClientConnectorSSLError(host=host, port=port):
            line = f"no TLS connection to {host}:{port}: {error.os_error}"
        case aiohttp.ClientConnectorError(host=host, port=port, os_error=ConnectionRefusedError()):
            line = f"nothing listens on {host}:{port}: connection refused"
        case aiohttp.ClientConnectorError(host=host, port=port):
            line = f"no connection to {host}:{port}: {error.os_error}"
        case aiohttp.ClientHttpProxyError():
            line = f"the proxy refused: {error.status} {error.message}"
        case aiohttp.ConnectionTimeoutError():
            line = f"no connection within {CONNECT_SECONDS:g} s"
        case TimeoutError():
            seconds = request.timeout_seconds
            within = "" if seconds is None else f" within {seconds:g} s"
            return NoAnswer(f"{server}: no answer to {asked}{within}", seconds or 0.0)
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            line = f"the connection was cut during {asked}"
        case _:
            line = f"{asked}: {str(error) or type(error).__name__}"
    return type_(" ".join(f"{server}: {line}".split()))


T = TypeVar("T")


class OneAtATime(Generic[T]):
    """Work whose result all share who ask for it meanwhile; it ends even if they are cancelled."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._work = work
        self._task: asyncio.Task[T] | None = None

    async def __call__(self) -> T:
        """The result of the work that runs, or is started now; raises what the work raises."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        return await asyncio.shield(self._task)


FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REREAD_SECONDS = 60.0


def is_in_cluster(environ: Mapping[str, str], folder: Path = FOLDER) -> bool:
    """Whether this process runs in a pod with a ServiceAccount."""
    return "KUBERNETES_SERVICE_HOST" in environ and (folder / "token").exists()


# The token lives for an hour and the kubelet replaces the file, so it is read again every minute
# and after a 401.
class InCluster:
    """Credentials from the mounted ServiceAccount; ConfigError if a file of it cannot be used."""

    def __init__(
        self, environ: Mapping[str, str], folder: Path = FOLDER, *, reread_seconds: float = REREAD_SECONDS
    ) -> None:
        host = environ["KUBERNETES_SERVICE_HOST"]
        host = f"[{host}]" if ":" in host else host  # IPv6
        self.server = f"https://{host}:{environ.get('KUBERNETES_SERVICE_PORT', '443')}"
        self.folder = folder
        self._reread_seconds = reread_seconds
        self._material: TlsMaterial | None = None
        self._config: ClientConfig | None = None
        self._read_at = float("-inf")
        self._renew = OneAtATime(self._renewed)

    async def config(self) -> ClientConfig:
        """The configuration for the next request, its token read within the last minute."""
        if self._config is None or loop_time() - self._read_at >= self._reread_seconds:
            return await self._renew()
        return self._config

    async def refresh(self) -> None:
        """Read the token and the CA again."""
        await self._renew()

    async def _renewed(self) -> ClientConfig:
        self._config = await asyncio.to_thread(self._read)
        self._read_at = loop_time()
        return self._config

    def _read(self) -> ClientConfig:
        token = self.folder / "token"
        authorization = bearer(_content(token).decode("utf-8", "replace"), str(token))
        material = TlsMaterial(authorities=_content(self.folder / "ca.crt"))
        tls = self._config.tls if self._config else None
        if material != self._material:  # a new context means new connections
            tls, self._material = material.context(str(self.folder / "ca.crt")), material
        return ClientConfig(self.server, {"Authorization": authorization}, tls)


def namespace(folder: Path = FOLDER) -> str:
    """The namespace of this pod.

    Raises:
        ConfigError: the file of the ServiceAccount cannot be read.
    """
    return _content(folder / "namespace").decode("utf-8", "replace").strip()


def _content(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error)) from error
    if not content.strip():
        raise ConfigError(str(path), "the file is empty")
    return content
