"""Credentials from kubeconfig files, with kubectl's rules of precedence.

Everything may change over time: token files and certificates are replaced, plugins and login servers issue
short-lived tokens. So a renewal reads everything again, in a thread; connections are kept while the TLS
material is the same.
"""

import asyncio
import base64
import binascii
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec
import yaml

from kube_runtime.client import http
from kube_runtime.client.http import ClientConfig, TlsMaterial, bearer
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Object, from_json, from_plain

T = TypeVar("T")
_QUOTED = re.compile(r"""['"][^<].*""", re.DOTALL)
"""Content of the file in an error of the YAML reader; its own words look like `'<block end>'`."""


class _Part(msgspec.Struct, frozen=True, rename="kebab"):
    """Base of the parts of a kubeconfig; names in the file have dashes."""


class Cluster(_Part, frozen=True):
    """The address of an API server, and how to trust it."""

    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[Object] | None = None


class ExecVariable(_Part, frozen=True):
    """An environment variable of an exec plugin."""

    name: str
    value: str


class ExecPlugin(_Part, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool = False


class AuthProvider(_Part, frozen=True):
    """A login that the client does itself."""

    name: str
    config: dict[str, str] | None = None


class User(_Part, frozen=True):
    """The credentials of a user."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(name="tokenFile", default=None)
    username: str | None = None
    password: str | None = None
    exec: ExecPlugin | None = None
    auth_provider: AuthProvider | None = None


class _Context(_Part, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _Entry(_Part, frozen=True):
    name: str
    context: _Context | None = None
    cluster: Cluster | None = None
    user: User | None = None


class _File(_Part, frozen=True):
    current_context: str | None = None
    contexts: list[_Entry] | None = None
    clusters: list[_Entry] | None = None
    users: list[_Entry] | None = None


@dataclass(frozen=True, slots=True)
class Named(Generic[T]):
    """A named entry of a kubeconfig, and the file that contains it."""

    path: Path
    name: str
    value: T

    def content(self, field: str, file: str) -> bytes:
        """Read a file that this entry refers to.

        Raises:
            ConfigError: it cannot be read.
        """
        # A relative path is relative to the file that contains it.
        path = self.path.parent / Path(file).expanduser()
        try:
            return path.read_bytes()
        except OSError as error:
            message = f"{self.name}: {field} {path}: {error.strerror or error}"
            raise ConfigError(str(self.path), message) from error


@dataclass(frozen=True, slots=True)
class Overrides:
    """What a command line chooses beside a context, as the flags of kubectl with these names.

    `cluster` and `user` are entries of the kubeconfig, `impersonated` the headers of impersonation, and
    `request_seconds` is the longest time of one request.
    """

    cluster: str = ""
    user: str = ""
    impersonated: tuple[tuple[str, str], ...] = ()
    request_seconds: float | None = None


class Choice(NamedTuple):
    """The entries of a context; the namespace is empty if the context has none."""

    cluster: Named[Cluster]
    user: Named[User]
    namespace: str


# KUBECONFIG may list several files. The first file that names an entry wins.
def choose(paths: Sequence[Path], context: str | None, overrides: Overrides | None = None) -> Choice:
    """Read the files and resolve a context; by default the current context of the first file that has one.

    Raises:
        ConfigError: a file cannot be used, or refers to an entry that does not exist.
    """
    cluster_name, user_name = (overrides.cluster, overrides.user) if overrides else ("", "")
    files = {path: _read(path) for path in paths}
    source = ":".join(str(path) for path in paths)
    current = context or next((f.current_context for f in files.values() if f.current_context), "")
    if not current and not cluster_name:
        raise ConfigError(source, "no current-context is set; name a context")

    def named(section: str, name: str) -> tuple[Path, _Entry]:
        """The file and the entry of that name; the first one counts."""
        lists = [(path, getattr(file, f"{section}s") or ()) for path, file in files.items()]
        entries = [(path, entry) for path, listed in lists for entry in listed]
        for path, entry in entries:
            if entry.name == name:
                return path, entry
        names = ", ".join(sorted({entry.name for _, entry in entries})) or "none"
        raise ConfigError(source, f"there is no {section} {name!r}; known: {names}")

    path, entry = named("context", current) if current else (paths[0], _Entry(""))
    chosen, user = entry.context or _Context(), Named(path, "(no user)", User())
    path, entry = named("cluster", cluster_name or chosen.cluster)
    cluster = Named(path, entry.name, entry.cluster or Cluster())
    if user_name or chosen.user:
        path, entry = named("user", user_name or chosen.user)
        user = Named(path, entry.name, entry.user or User())
    return Choice(cluster, user, chosen.namespace or "")


def _read(path: Path) -> _File:
    try:
        content = yaml.safe_load(path.read_bytes())
    except OSError as error:
        raise ConfigError(str(path), error.strerror or str(error)) from error
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        # Without its cause, whose text quotes the line: it may contain a token.
        raise ConfigError(str(path), f"not YAML: {_where(error)}") from None
    if content is None:
        raise ConfigError(str(path), "the file is empty")
    try:
        return from_plain(content, _File)
    except msgspec.ValidationError as error:
        raise ConfigError(str(path), f"not a kubeconfig: {error}") from error


def _where(error: Exception) -> str:
    """The problem and its position, without content of the file."""
    match error:
        case yaml.MarkedYAMLError(problem=str() as problem, problem_mark=yaml.Mark() as mark):
            detail = _QUOTED.sub("(…)", problem)
            return f"line {mark.line + 1}, column {mark.column + 1}: {detail}"
        case yaml.reader.ReaderError():
            return f"position {error.position}: {error.reason}"
        case UnicodeDecodeError():
            return f"position {error.start}: {error.reason}"
    return type(error).__name__


REREAD_SECONDS = 60.0
EXEC_SECONDS = 60.0
"""How long an exec plugin may take: every request waits for it."""
INTERACTIVE_SECONDS = 300.0
"""The same at a terminal, where a person may have to log in."""
_MARGIN = timedelta(seconds=30)
_PLUGIN_EXTENSION = "client.authentication.k8s.io/exec"
"""The extension of a cluster that is meant for plugins."""


@dataclass(frozen=True, slots=True)
class Login:
    """What to present to the API server. A `due` of None: it does not expire, as far as is known."""

    authorization: str | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    due: datetime | None = None


def login_of(cluster: Named[Cluster], user: Named[User]) -> Login:
    """Log in as that user. Runs plugins and calls login servers: not for the event loop.

    Raises:
        ConfigError: it failed.
    """
    auth_info, source = user.value, str(user.path)
    if auth_info.token_file:
        # As in client-go, the file wins over the token beside it, and is read again every minute.
        token = user.content("tokenFile", auth_info.token_file).decode("utf-8", "replace")
        soon = datetime.now(UTC) + timedelta(seconds=REREAD_SECONDS)
        return Login(bearer(token, source), due=soon)
    if auth_info.token:
        return Login(bearer(auth_info.token, source))
    if auth_info.auth_provider:
        return _provider_login(user, auth_info.auth_provider)
    if auth_info.exec:
        return _plugin_login(cluster, user, auth_info.exec)
    if auth_info.username and auth_info.password is not None:
        pair = f"{auth_info.username}:{auth_info.password}".encode()
        return Login(f"Basic {base64.b64encode(pair).decode()}")
    return Login()


def renewal_time(expiry: datetime | None) -> datetime | None:
    """When to renew: a little before the expiry, but not at once when the lifetime is short."""
    if expiry is None:
        return None
    if expiry.tzinfo is None:
        expiry = expiry.replace(tzinfo=UTC)
    return expiry - min(_MARGIN, max(expiry - datetime.now(UTC), timedelta(0)) / 10)


def _provider_login(user: Named[User], provider: AuthProvider) -> Login:
    try:
        from kube_runtime.client.login_provider import provider_login
    except ModuleNotFoundError as error:
        install = "pip install './packages/kube-runtime[login-providers]' in a clone of the repository"
        message = f"login providers need the package kubernetes: {install}, or use an exec plugin"
        raise ConfigError(str(user.path), message) from error
    authorization, expiry = provider_login(user.path, user.name, provider.name, provider.config or {})
    return Login(authorization, due=renewal_time(expiry))


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    api_version: str
    kind: str
    status: _ExecStatus


def _plugin_login(cluster: Named[Cluster], user: Named[User], plugin: ExecPlugin) -> Login:
    source = str(user.path)
    try:
        status = _plugin_status(cluster, user, plugin)
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
        if isinstance(error, subprocess.TimeoutExpired):
            why = f"no answer within {error.timeout:g} s, ended"
        hint = f". {plugin.install_hint}" if plugin.install_hint else ""
        line = f"exec plugin {plugin.command}: {why}{hint}"
        raise ConfigError(source, " ".join(line.split())) from error
    if not status.token and not status.client_certificate_data:
        raise ConfigError(source, f"exec plugin {plugin.command}: neither token nor certificate")
    return Login(
        authorization=bearer(status.token, source) if status.token else None,
        certificate=(status.client_certificate_data or "").encode() or None,
        key=(status.client_key_data or "").encode() or None,
        due=renewal_time(status.expiration_timestamp),
    )


def _plugin_status(cluster: Named[Cluster], user: Named[User], plugin: ExecPlugin) -> _ExecStatus:
    # Raises ValueError if it fails or prints something else, OSError, and subprocess.TimeoutExpired.
    command = plugin.command
    if "/" in command:  # as in kubectl: relative to the kubeconfig; a bare name is looked up in PATH
        command = str(user.path.parent / command)
    is_interactive = sys.stdout.isatty()
    spec: Object = {"interactive": is_interactive}
    if plugin.provide_cluster_info:
        spec["cluster"] = _cluster_info(cluster)
    request = {"apiVersion": plugin.api_version, "kind": "ExecCredential", "spec": spec}
    variables = {variable.name: variable.value for variable in plugin.env or ()}
    ended = subprocess.run(  # noqa: S603  # what the user's own kubeconfig names
        [command, *(plugin.args or ())],
        stdout=subprocess.PIPE,
        stderr=None if is_interactive else subprocess.PIPE,
        stdin=None if is_interactive else subprocess.DEVNULL,
        env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(request)},
        timeout=INTERACTIVE_SECONDS if is_interactive else EXEC_SECONDS,
        check=False,
    )
    if ended.returncode:
        message = (ended.stderr or b"").decode("utf-8", "replace")
        raise ValueError(f"process returned {ended.returncode}. {message}".rstrip(" ."))
    try:
        credential = from_json(ended.stdout, _ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"unexpected output: {error}") from error
    if credential.api_version != plugin.api_version:
        answer = credential.api_version
        raise ValueError(f"answered with apiVersion {answer!r} (expected {plugin.api_version!r})")
    return credential.status


def _cluster_info(cluster: Named[Cluster]) -> Object:
    """The cluster as a plugin gets it; the extension for plugins becomes `config`."""
    value = cluster.value
    info: Object = {
        "server": value.server,
        "tls-server-name": value.tls_server_name,
        "insecure-skip-tls-verify": value.insecure_skip_tls_verify or None,
        "certificate-authority-data": value.certificate_authority_data,
        "proxy-url": value.proxy_url,
        "extensions": value.extensions,
    }
    if value.certificate_authority and not value.certificate_authority_data:
        pem = cluster.content("certificate-authority", value.certificate_authority)
        info["certificate-authority-data"] = base64.b64encode(pem).decode()
    for extension in value.extensions or ():
        if extension["name"] == _PLUGIN_EXTENSION:
            info["config"] = extension["extension"]
    return {name: field for name, field in info.items() if field is not None}


class Kubeconfig:
    """Credentials of one context of a list of kubeconfig files."""

    def __init__(
        self, paths: Sequence[Path], context: str | None = None, overrides: Overrides | None = None
    ) -> None:
        self._choose = partial(choose, tuple(paths), context, overrides)
        self._loaded: _Loaded | None = None
        self._load_once = http.OneAtATime(self._renewed)

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
        await self._load_once()

    async def _current(self) -> "_Loaded":
        if self._loaded is None or self._loaded.is_due(datetime.now(UTC)):
            return await self._load_once()
        return self._loaded

    async def _renewed(self) -> "_Loaded":
        self._loaded = await asyncio.to_thread(self._load)
        return self._loaded

    def _load(self) -> "_Loaded":
        before = self._loaded
        cluster, user, namespace = self._choose()
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
        message = f"cluster {cluster.name}: server {_shown(server)!r} has a user name or a password in it"
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
        cluster, "certificate-authority", trust.certificate_authority, trust.certificate_authority_data
    )
    return TlsMaterial(authorities, certificate, key, verify=not trust.insecure_skip_tls_verify)


def _pem(entry: Named[Cluster] | Named[User], field: str, file: str | None, data: str | None) -> bytes | None:
    if data:
        try:
            return base64.b64decode(data, validate=False)
        except (binascii.Error, ValueError) as error:
            message = f"{entry.name}: {field}-data is not base64: {error}"
            raise ConfigError(str(entry.path), message) from error
    return entry.content(field, file) if file else None


async def default_namespace(transport: http.AiohttpTransport) -> str:
    """The namespace that kubectl would use: that of the context, that of the pod, else `default`.

    Raises:
        ConfigError: a file of the ServiceAccount or a kubeconfig cannot be used.
    """
    match transport.credentials:
        case Kubeconfig() as kubeconfig:
            return await kubeconfig.namespace() or "default"
        case http.InCluster(folder=folder):
            return await asyncio.to_thread(http.namespace, folder)
        case _:
            return "default"
