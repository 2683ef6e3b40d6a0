"""A registry client for builds: whether an image exists, and the single layer of an artifact.

Source: the distribution specification 1.1 (pull), and its token flow. Responses are not trusted: sizes and
times are limited, and redirects get no credentials.
"""

import asyncio
import base64
import errno
import ipaddress
import re
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

import aiohttp
import msgspec

from dynamo_graphs.facts import registry_of_credential
from dynamo_legacy.build.image import BuiltImage, Reference, parse_reference
from dynamo_legacy.build.plan import RETRY_SECONDS, Probe
from dynamo_legacy.settings import LegacySettings
from kube_runtime.controller.worker_slots import worker_slot_released
from kube_runtime.decode import UNREADABLE
from kube_runtime.text import cut

SECONDS: Final = 10.0
"""Seconds for all requests of one probe."""
_AT_ONCE: Final = 8
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
_METADATA: Final = frozenset(
    map(
        ipaddress.ip_address,
        ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16"),
    )
)
"""Metadata services without a link-local address. Sources: the documentation of AWS (IMDS over IPv6), Google
Cloud, Alibaba Cloud and Azure."""


class RegistryError(Exception):
    """A request to a registry failed; the message is one line without credentials."""

    def __init__(self, text: str, retry_seconds: float = RETRY_SECONDS) -> None:
        super().__init__(text)
        self.retry_seconds = retry_seconds


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


@asynccontextmanager
async def registry_session(*, only_outside: bool = False) -> AsyncIterator[aiohttp.ClientSession]:
    """A session for registries; `only_outside` refuses this machine, its link and metadata services."""
    factory = _socket_to_outside if only_outside else None
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=8, force_close=True, socket_factory=factory),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=SECONDS, sock_read=SECONDS),
        trust_env=False,
    ) as session:
        yield session


@dataclass(slots=True)
class Registry:
    """One repository of a registry."""

    session: aiohttp.ClientSession
    reference: Reference
    is_insecure: bool = False
    login: Login | None = None
    _authorization: str = ""

    async def probe(self) -> Probe:
        """Check whether the image exists. Errors are part of the result, never raised."""
        try:
            async with asyncio.timeout(SECONDS):
                status, _ = await self._ask("HEAD", f"manifests/{self.reference.version}")
        except RegistryError as error:
            return Probe(error=str(error), retry_seconds=error.retry_seconds)
        except TimeoutError:
            return Probe(error=f"{self.reference.host}: no answer within {SECONDS:.0f} s")
        return Probe(exists=status == HTTPStatus.OK)

    async def manifest(self) -> dict[str, Any]:
        """The manifest of the reference.

        Raises:
            RegistryError: the request failed.
        """
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
        """Send a request, and return status (200 or 404) and body.

        Raises:
            RegistryError: any other status, or no response.
        """
        status, headers, body = await self._send(method, self._url(path), self._authorization)
        if status == HTTPStatus.UNAUTHORIZED and not self._authorization:
            self._authorization = await self._authorization_for(headers.get("WWW-Authenticate", ""))
            status, headers, body = await self._send(method, self._url(path), self._authorization)
        if status in (HTTPStatus.OK, HTTPStatus.NOT_FOUND):
            return status, body
        match status:
            case HTTPStatus.UNAUTHORIZED | HTTPStatus.FORBIDDEN:
                raise self._error(f"status {status}, the credentials are missing or wrong")
            case HTTPStatus.TOO_MANY_REQUESTS:
                raise self._error("too many requests", _retry_after(headers))
            case _:
                raise self._error(f"status {status}", _retry_after(headers))

    async def _authorization_for(self, challenge: str) -> str:
        """The `Authorization` header that a challenge requires."""
        scheme, _, rest = challenge.partition(" ")
        basic = self.login.header if self.login else ""
        if scheme.lower() != "bearer":
            if not basic:
                raise self._error("requires credentials, and none are set")
            return basic
        parameters = dict(_PARAMETER.findall(rest[:4000]))
        try:
            realm = urlsplit(parameters.get("realm", ""))
        except ValueError as error:
            raise self._error("its token service has no URL") from error
        if realm.scheme != "https" and not (self.is_insecure and realm.scheme == "http"):
            raise self._error("its token service is not https")
        query = {"service": parameters.get("service", "")}
        query["scope"] = f"repository:{self.reference.repository}:pull"
        url = f"{realm.geturl()}{'&' if realm.query else '?'}{urlencode(query)}"
        status, _, body = await self._send("GET", url, basic)
        try:
            answer = msgspec.json.decode(body) if status == HTTPStatus.OK else {}
        except UNREADABLE:
            answer = {}
        token = (
            answer.get("token") or answer.get("access_token") if isinstance(answer, dict) else ""
        )
        if not isinstance(token, str) or not token:
            raise self._error(f"its token service answers {status}")
        return f"Bearer {token}"

    async def _send(
        self, method: str, url: str, authorization: str
    ) -> tuple[int, Mapping[str, str], bytes]:
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
            raise self._error(text or type(error).__name__) from error

    def _error(self, text: str, retry_seconds: float = RETRY_SECONDS) -> RegistryError:
        return RegistryError(f"{self.reference.host}: {text}", retry_seconds)

    def _url(self, path: str) -> str:
        host, scheme = self.reference.host, "http" if self.is_insecure else "https"
        address = _HUB[1] if host == _HUB[0] else host
        return f"{scheme}://{address}/v2/{self.reference.repository}/{path}"

    @staticmethod
    def _headers(authorization: str) -> Mapping[str, str]:
        headers = {"Accept": _MANIFESTS}
        return {**headers, "Authorization": authorization} if authorization else headers


@dataclass(frozen=True, slots=True)
class RegistryProbe:
    """Asks registries for images, a few at a time, in a way that tenants cannot abuse.

    The administrator's registry gets the administrator's login. A registry that a tenant names gets no
    login, and must not be an address of this machine, its link or a metadata service.
    """

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE))

    async def asked(self, image: BuiltImage, settings: LegacySettings) -> Probe:
        """Check whether an image exists; errors are part of the result."""
        reference, login = parse_reference(image.pushed), None
        if settings.registry_username and not image.is_own:
            login = Login(settings.registry_username, settings.registry_password.reveal())
        with worker_slot_released():
            async with self.places, registry_session(only_outside=image.is_own) as session:
                return await Registry(session, reference, image.is_insecure, login).probe()


def is_outside(address: str) -> bool:
    """Whether an address is not of this machine, its link or a metadata service."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False  # the resolver accepts "127.1" and "2130706433" as addresses too
    ip = getattr(ip, "ipv4_mapped", None) or ip
    is_near = ip.is_loopback or ip.is_link_local or ip.is_multicast or ip.is_unspecified
    return not is_near and ip not in _METADATA


def _socket_to_outside(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket for an address outside, whether it was resolved from a name or given literally."""
    family, type_, protocol, _, (host, *_) = address
    if not is_outside(host):
        raise PermissionError(errno.EACCES, "the operator does not connect to such addresses")
    return socket.socket(family, type_, protocol)


def _retry_after(headers: Mapping[str, str]) -> float:
    value = headers.get("Retry-After", "")
    if not value.isdecimal():
        return RETRY_SECONDS
    return min(max(float(value), _LEAST_RETRY_SECONDS), _MOST_RETRY_SECONDS)
