"""A registry client for builds: whether an image exists, and the single layer of an artifact.

Source: the distribution specification 1.1 (pull), and its token flow. Responses are not trusted: sizes and
times are limited, no redirect is followed, and tokens come from the registry's own host or a known one.
"""

import asyncio
import base64
import errno
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec
import structlog

from dynamo_legacy.build.plan import RETRY_SECONDS, Probe
from dynamo_legacy.build.source import BuiltImage, Reference, parse_reference
from dynamo_legacy.settings import LegacySettings, Network, cluster_networks, known_registries
from dynamo_operator.shared.cluster import registry_of_credential
from kube_runtime.types.meta import cut
from kube_runtime.wire import UNREADABLE

_IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""Source: RFC 6052; the last four bytes are the IPv4 address that is connected to."""
_UNICAST: Final = ipaddress.ip_network("2000::/3")
"""Public IPv6 addresses. Source: RFC 4291, section 2.4, and IANA's registry."""
_TUNNELS: Final = tuple(map(ipaddress.ip_network, ("2002::/16", "2001::/32")))
"""6to4 and Teredo, which contain IPv4 addresses of others. Sources: RFC 3056, RFC 4380."""
_METADATA: Final = ipaddress.ip_address("168.63.129.16")
"""The metadata service with a public address. Source: the documentation of Azure."""


def is_public(address: str, cluster: Sequence[Network] = ()) -> bool:
    """Whether an address belongs to neither this machine, a private network, nor one of the cluster's."""
    try:
        ip = _connected_to(ipaddress.ip_address(address))
    except ValueError:
        return False  # the resolver accepts "127.1" and "2130706433" as addresses too
    if ip.version == 6 and ip not in _UNICAST:  # noqa: PLR2004
        return False
    if ip.is_multicast or not ip.is_global or ip == _METADATA:
        return False
    return not any(ip in network for network in (*_TUNNELS, *cluster))


def _connected_to(ip: _IPAddress) -> _IPAddress:
    """The IPv4 address that an IPv6 address stands for, else the address itself."""
    if not isinstance(ip, ipaddress.IPv6Address):
        return ip
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip


# Each address is checked when its socket is created, so the address that was checked is the one
# that is connected to, whatever the name server answers next.
def public_socket(cluster: Sequence[Network]) -> Callable[[aiohttp.AddrInfoType], socket.socket]:
    """Create sockets for public addresses only; for others it raises PermissionError (EACCES)."""

    def opened(address: aiohttp.AddrInfoType) -> socket.socket:
        family, type_, protocol, _, (host, *_) = address
        if not is_public(str(host), cluster):
            raise PermissionError(errno.EACCES, "not a public address, and not in DYNAMO_KNOWN_REGISTRIES")
        return socket.socket(family, type_, protocol)

    return opened


SECONDS: Final = 10.0
"""Seconds for all requests of one probe."""
_AT_ONCE: Final = 8
SocketFactory = Callable[[aiohttp.AddrInfoType], socket.socket]
_MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a manifest or token. Source: the limit of registries for manifests."""
_LEAST_RETRY_SECONDS: Final = 5.0
_MOST_RETRY_SECONDS: Final = 3600.0
_MANIFESTS: Final = ", ".join(
    f"application/vnd.{media_type}+json"
    for media_type in (
        "oci.image.manifest.v1",
        "oci.image.index.v1",
        "docker.distribution.manifest.v2",
        "docker.distribution.manifest.list.v2",
    )
)
_PARAMETER: Final = re.compile(r'([a-z]{1,20})="([^"]{0,2000})"', re.ASCII)
_HUB: Final = ("docker.io", "registry-1.docker.io")
_TOKEN_HOSTS: Final = {
    "docker.io": "auth.docker.io",
    "nvcr.io": "authn.nvidia.com",
    "registry.gitlab.com": "gitlab.com",
}
"""Hosts of the token services of public registries. ghcr.io, quay.io, gcr.io, pkg.dev, azurecr.io and
public.ecr.aws issue tokens themselves; nvcr.io does both; private registries of ECR have no tokens."""
UNANSWERED: Final = "the registry did not say whether it has the image; the operator's log has the cause"
"""The only text about a failed request that users see. Causes would describe networks beyond their reach."""

_log: Final = structlog.get_logger(__name__)


class RegistryError(Exception):
    """A request to a registry failed; the message is one line without credentials.

    `is_refused`: the registry requires credentials, or its address or token service is not allowed, so
    repeating the request changes nothing.
    """

    def __init__(self, text: str, retry_seconds: float = RETRY_SECONDS, *, is_refused: bool = False) -> None:
        super().__init__(text)
        self.retry_seconds = retry_seconds
        self.is_refused = is_refused


@dataclass(frozen=True, slots=True)
class Login:
    """User and password for a registry; its representation hides both."""

    user: str
    password: str

    def __repr__(self) -> str:
        return "Login(…)"

    @property
    def header(self) -> str:
        """The value of `Authorization`."""
        return "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()


def login_of(config: bytes, host: str) -> Login | None:
    """The login for a host in a Docker `config.json`; None if there is none or the file is invalid."""
    try:
        auths: dict[str, dict[str, Any]] = msgspec.json.decode(config).get("auths", {})
        for server, entry in auths.items():
            if registry_of_credential(server) == host:
                text = base64.b64decode(entry.get("auth", "")).decode()
                user, _, password = text.partition(":")
                return Login(entry.get("username") or user, entry.get("password") or password)
    except (AttributeError, RecursionError, TypeError, ValueError):
        return None
    return None


def registry_session(factory: SocketFactory | None = None) -> aiohttp.ClientSession:
    """A session for registries, with sockets of the factory."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=8, force_close=True, socket_factory=factory),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=SECONDS, sock_read=SECONDS),
        trust_env=False,
    )


@dataclass(slots=True)
class Registry:
    """One repository of a registry.

    `token_host` may issue its tokens beside the registry's own host. None: any host, as container runtimes
    do; only for a pod of the tenant who named the registry.
    """

    session: aiohttp.ClientSession
    reference: Reference
    is_insecure: bool = False
    login: Login | None = None
    token_host: str | None = ""
    _authorization: str = ""

    async def has_image(self) -> bool:
        """Whether the image exists. Raises: RegistryError if the request failed."""
        try:
            async with asyncio.timeout(SECONDS):
                status, _ = await self._ask("HEAD", f"manifests/{self.reference.version}")
        except TimeoutError as error:
            raise self._error(f"no answer within {SECONDS:.0f} s") from error
        return status == HTTPStatus.OK

    async def manifest(self) -> dict[str, Any]:
        """The manifest of the reference. Raises: RegistryError if the request failed."""
        status, body = await self._ask("GET", f"manifests/{self.reference.version}")
        if status == HTTPStatus.NOT_FOUND:
            raise self._error(f"{self.reference.repository} not found")
        try:
            manifest = msgspec.json.decode(body)
        except UNREADABLE as error:
            raise self._error("the manifest is not JSON") from error
        if not isinstance(manifest, dict):
            raise self._error("the manifest is not an object")
        return manifest

    def blob(self, digest: str) -> tuple[str, Mapping[str, str]]:
        """URL and headers of a blob, after the manifest was read."""
        return self._url(f"blobs/{digest}"), self._headers(self._authorization)

    async def _ask(self, method: str, path: str) -> tuple[int, bytes]:
        """The status, 200 or 404, and the body. Raises: RegistryError for any other status."""
        status, headers, body = await self._send(method, self._url(path), self._authorization)
        if status == HTTPStatus.UNAUTHORIZED and not self._authorization:
            self._authorization = await self._authorization_for(headers.get("WWW-Authenticate", ""))
            status, headers, body = await self._send(method, self._url(path), self._authorization)
        if status in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
            return status, body
        match status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                text = f"status {status}, the credentials are missing or wrong"
                raise self._error(text, is_refused=True)
            case HTTPStatus.TOO_MANY_REQUESTS:
                raise self._error("too many requests", _retry_after(headers))
            case _:
                raise self._error(f"status {status}", _retry_after(headers))

    async def _authorization_for(self, challenge: str) -> str:
        scheme, _, rest = challenge.partition(" ")
        basic = self.login.header if self.login else ""
        if scheme.lower() != "bearer":
            if not basic:
                raise self._error("requires credentials, and none are set", is_refused=True)
            return basic
        parameters = dict(_PARAMETER.findall(rest[:4000]))
        query = {"service": parameters.get("service", "")}
        query["scope"] = f"repository:{self.reference.repository}:pull"
        url = self._token_url(parameters.get("realm", ""), urlencode(query))
        status, _, body = await self._send("GET", url, basic)
        try:
            answer = msgspec.json.decode(body) if status == HTTPStatus.OK else {}
        except UNREADABLE:
            answer = {}
        token = answer.get("token") or answer.get("access_token") if isinstance(answer, dict) else ""
        if not isinstance(token, str) or not token:
            is_refused = status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
            raise self._error(f"its token service answers {status}", is_refused=is_refused)
        return f"Bearer {token}"

    def _token_url(self, realm: str, query: str) -> str:
        """Raises: RegistryError if the realm has another host, or less security than the registry."""
        try:
            parts = urlsplit(realm)
            host, port = parts.hostname or "", parts.port
        except ValueError as error:
            raise self._error("its token service has no URL", is_refused=True) from error
        if parts.scheme != "https" and not (self.is_insecure and parts.scheme == "http"):
            raise self._error("its token service is not https", is_refused=True)
        hosts = (self._address.partition(":")[0], self.token_host)
        if self.token_host is not None and (not host or host not in hosts):
            text = f'its tokens come from "{cut(host, 100)}": list it in DYNAMO_KNOWN_REGISTRIES'
            raise self._error(text, is_refused=True)
        authority = host if port is None else f"{host}:{port}"
        if self.token_host is None:
            authority = parts.netloc
        query = f"{parts.query}&{query}" if parts.query else query
        return f"{parts.scheme}://{authority}{parts.path or '/'}?{query}"

    async def _send(self, method: str, url: str, authorization: str) -> tuple[int, Mapping[str, str], bytes]:
        try:
            async with self.session.request(
                method, url, headers=self._headers(authorization), allow_redirects=False
            ) as answer:
                body = bytearray()
                async for chunk in answer.content.iter_any():
                    body += chunk
                    if len(body) > _MOST_BYTES:
                        raise self._error("the answer is too large")
                return answer.status, answer.headers, bytes(body)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            text = cut(" ".join(str(error).split()), 200)
            is_refused = getattr(error, "errno", None) == errno.EACCES
            raise self._error(text or type(error).__name__, is_refused=is_refused) from error

    def _error(
        self, text: str, retry_seconds: float = RETRY_SECONDS, *, is_refused: bool = False
    ) -> RegistryError:
        text = f"{self.reference.host}: {text}"
        return RegistryError(text, retry_seconds, is_refused=is_refused)

    @property
    def _address(self) -> str:
        host = self.reference.host.lower()
        return _HUB[1] if host == _HUB[0] else host

    def _url(self, path: str) -> str:
        scheme = "http" if self.is_insecure else "https"
        return f"{scheme}://{self._address}/v2/{self.reference.repository}/{path}"

    @staticmethod
    def _headers(authorization: str) -> Mapping[str, str]:
        headers = {"Accept": _MANIFESTS}
        return {**headers, "Authorization": authorization} if authorization else headers


@dataclass(frozen=True, slots=True)
class RegistryProbe:
    """Asks registries for images, a few at a time, in a way that tenants cannot abuse.

    The administrator's registry gets the administrator's login. A registry that a tenant names gets no
    login, and is asked at public addresses only, unless the administrator lists it.
    """

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def asked(self, image: BuiltImage, settings: LegacySettings) -> Probe:
        """Check whether an image exists; errors are part of the result.

        A tenant's registry that the operator may not ask counts as one without the image: the build has
        the tenant's login, runs in the tenant's network, and reports its own errors.
        """
        reference, login = parse_reference(image.pushed), None
        if settings.registry_username and not image.is_own:
            login = Login(settings.registry_username, settings.registry_password.reveal())
        host, listed = reference.host.lower(), known_registries(settings.known_registries)
        is_trusted = not image.is_own or host in listed
        factory = None if is_trusted else public_socket(cluster_networks(settings.cluster_networks))
        token_host = listed.get(host) or _TOKEN_HOSTS.get(host, "")
        try:
            async with self.places, registry_session(factory) as session:
                registry = Registry(session, reference, image.is_insecure, login, token_host)
                return Probe(exists=await registry.has_image())
        except RegistryError as error:
            _log.warning("registry does not answer", image=image.pushed, error=str(error))
            if image.is_own and error.is_refused:
                return Probe()
            return Probe(error=UNANSWERED, retry_seconds=error.retry_seconds)


def _retry_after(headers: Mapping[str, str]) -> float:
    value = headers.get("Retry-After", "")
    if not value.isdecimal():
        return RETRY_SECONDS
    return min(max(float(value), _LEAST_RETRY_SECONDS), _MOST_RETRY_SECONDS)
