"""Log in as the user of a kubeconfig: token, password, exec plugin or login provider."""

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec

from kube_runtime.client.auth import bearer
from kube_runtime.client.kubeconfig_file import AuthProvider, Cluster, ExecPlugin, Named, User
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object

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
        message = "login providers need the package kubernetes: pip install kubernetes"
        raise ConfigError(str(user.path), message) from error
    return provider_login(user, provider)


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The credentials that a plugin prints."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    """The object that a plugin prints."""

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
    """Run a plugin, and return what it prints.

    Raises:
        ValueError: it failed, or printed something else.
        OSError: it cannot be started.
        subprocess.TimeoutExpired: it took too long.
    """
    command = plugin.command
    if (
        "/" in command
    ):  # as in kubectl: relative to the kubeconfig; a bare name is looked up in PATH
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
        credential = msgspec.json.decode(ended.stdout, type=_ExecCredential)
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
