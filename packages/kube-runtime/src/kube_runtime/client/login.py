"""Who we are, from the user of a kubeconfig: token, password, exec plugin or login provider.

The last two run through the `kubernetes` package, which knows them; it is imported only then. The subtle
thing is what it leaves out: it logs the failure of a plugin and continues without credentials, drops
their expiry when they are certificates, and asks a login server without a certificate to verify.
"""

import base64
import binascii
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from types import ModuleType

import msgspec
import yaml

from kube_runtime.client.auth import bearer
from kube_runtime.client.kubeconfig_file import AuthProvider, Cluster, ExecPlugin, Named, User
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Object

REREAD_SECONDS = 60.0
EXEC_SECONDS = 60.0
"""How long an exec plugin may take."""
INTERACTIVE_SECONDS = 300.0
"""The same at a terminal, where a person may have to log in."""
_MARGIN = timedelta(seconds=30)
_TOKENS = ("id-token", "refresh-token", "access-token", "expiry")


@dataclass(frozen=True, slots=True)
class Login:
    """What to present. None means for `due`: it does not expire, as far as we know."""

    authorization: str | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    due: datetime | None = None


def login_of(cluster: Named[Cluster], user: Named[User]) -> Login:
    """The login of a user. Runs plugins and asks login servers: not for the event loop.

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
        return _provided(user, auth_info.auth_provider)
    if auth_info.exec:
        return _executed(cluster, user, auth_info.exec)
    if auth_info.username and auth_info.password is not None:
        pair = f"{auth_info.username}:{auth_info.password}".encode()
        return Login(f"Basic {base64.b64encode(pair).decode()}")
    return Login()


class _ExecStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What an exec plugin answers."""

    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


def _executed(cluster: Named[Cluster], user: Named[User], plugin: ExecPlugin) -> Login:
    source = str(user.path)
    library = _library(source, "exec plugins")
    options: Object = msgspec.to_builtins(plugin)
    if (
        "/" in plugin.command
    ):  # as in kubectl: relative to the kubeconfig; a bare name is looked up in PATH
        options["command"] = str(user.path.parent / plugin.command)
    node = library.ConfigNode("exec", options)
    about = library.ConfigNode("cluster", _cluster_info(cluster))
    try:
        provider = library.TimedExecProvider(node, None, about)
        status = provider.run_within(EXEC_SECONDS, INTERACTIVE_SECONDS)
        answer = msgspec.convert(status, _ExecStatus)
    except (library.ConfigException, OSError, KeyError, msgspec.ValidationError) as error:
        hint = f". {plugin.install_hint}" if plugin.install_hint else ""
        line = f"exec plugin {plugin.command}: {error}{hint}"
        raise ConfigError(source, " ".join(line.split())) from error
    if not answer.token and not answer.client_certificate_data:
        raise ConfigError(source, f"exec plugin {plugin.command}: neither token nor certificate")
    return Login(
        authorization=bearer(answer.token, source) if answer.token else None,
        certificate=(answer.client_certificate_data or "").encode() or None,
        key=(answer.client_key_data or "").encode() or None,
        due=_before(answer.expiration_timestamp),
    )


def _cluster_info(cluster: Named[Cluster]) -> Object:
    """The cluster's data for a plugin, if it asks for them."""
    value = cluster.value
    info: Object = {
        "server": value.server,
        "tls-server-name": value.tls_server_name,
        "insecure-skip-tls-verify": value.insecure_skip_tls_verify or None,
        "certificate-authority-data": value.certificate_authority_data,
        "proxy-url": value.proxy_url,
        "extensions": value.extensions,  # the library takes the plugin's own out of it
    }
    if value.certificate_authority and not value.certificate_authority_data:
        pem = cluster.content("certificate-authority", value.certificate_authority)
        info["certificate-authority-data"] = base64.b64encode(pem).decode()
    return {name: field for name, field in info.items() if field is not None}


def _provided(user: Named[User], provider: AuthProvider) -> Login:
    source = str(user.path)
    library = _library(source, "login providers")
    stored = provider.config or {}
    config = dict(stored)
    if provider.name == "oidc":
        config.setdefault("client-secret", "")  # a public client has none
        if not {"idp-certificate-authority", "idp-certificate-authority-data"} & config.keys():
            config["idp-certificate-authority"] = library.certifi.where()
    document = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {}}],
        "users": [
            {"name": "it", "user": {"auth-provider": {"name": provider.name, "config": config}}}
        ],
    }
    configuration = library.Configuration()
    try:
        library.KubeConfigLoader(document, config_base_path="").load_and_set(configuration)
    except library.login_errors as error:
        line = f"login with {provider.name}: {str(error) or type(error).__name__}"
        raise ConfigError(source, " ".join(line.split())) from error
    authorization = configuration.api_key.get("BearerToken")
    if not authorization:
        message = f"login with {provider.name} gave no token; use an exec plugin"
        raise ConfigError(source, message)
    expiry = _expiry_of_jwt(authorization)
    if expiry is not None and expiry <= datetime.now(UTC):
        message = f"login with {provider.name} has expired and was not renewed; log in again"
        raise ConfigError(source, message)
    changed = {name: config[name] for name in _TOKENS if config.get(name) != stored.get(name)}
    if changed:
        _store(user, changed)
    return Login(authorization, due=_before(expiry))


def _store(user: Named[User], changed: dict[str, str]) -> None:
    """Keep renewed tokens, as kubectl does: a refresh token may be good for one use only."""
    path = user.path.resolve()
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        content = yaml.safe_load(path.read_bytes())
        for entry in content["users"]:
            if entry["name"] == user.name:
                entry["user"]["auth-provider"]["config"].update(changed)
        new.touch(mode=0o600)
        new.write_text(yaml.safe_dump(content, sort_keys=False))
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        message = f"renewed tokens cannot be stored: {error.strerror or error}"
        raise ConfigError(str(path), message) from error


def _expiry_of_jwt(authorization: str) -> datetime | None:
    parts = authorization.removeprefix("Bearer ").split(".")
    if len(parts) != 3:  # noqa: PLR2004 - header, claims, signature
        return None
    try:
        claims = msgspec.json.decode(base64.urlsafe_b64decode(parts[1] + "=="))
        return datetime.fromtimestamp(claims["exp"], UTC)
    except (msgspec.DecodeError, binascii.Error, KeyError, TypeError, ValueError):
        return None  # not a JWT: only the API server knows when it ends


def _before(expiry: datetime | None) -> datetime | None:
    """When to renew: a little earlier, but not at once when the lifetime is short."""
    if expiry is None:
        return None
    if expiry.tzinfo is None:
        expiry = expiry.replace(tzinfo=UTC)
    return expiry - min(_MARGIN, max(expiry - datetime.now(UTC), timedelta(0)) / 10)


def _library(source: str, feature: str) -> ModuleType:
    try:
        return import_module("kube_runtime.client.login_library")
    except ModuleNotFoundError as error:
        message = f"{feature} need the package kubernetes: pip install kubernetes"
        raise ConfigError(source, message) from error
