"""Logins by an `auth-provider` of a kubeconfig, such as OIDC, through the `kubernetes` package.

The package takes a second to import, so `login` does it only when needed. It asks a login server without a
certificate to verify unless it is given one, and keeps a token that has expired if it cannot renew it.
"""

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import certifi
import msgspec
import yaml
from kubernetes.client import Configuration
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import KubeConfigLoader
from oauthlib.oauth2 import OAuth2Error  # type: ignore[import-untyped]
from urllib3.exceptions import HTTPError

from kube_runtime.errors import ConfigError

_LOGIN_ERRORS = (ConfigException, HTTPError, OAuth2Error, OSError, KeyError, ValueError)
"""How a login may fail; the errors of `requests` are OSErrors."""


class _Loader(Protocol):
    """The part of `KubeConfigLoader`, which has no types, that is used."""

    def load_and_set(self, client_configuration: Configuration) -> None: ...


_LOADER: Callable[..., _Loader] = KubeConfigLoader
_TOKENS = ("id-token", "refresh-token", "access-token", "expiry")


def provider_login(
    path: Path, user: str, provider: str, stored: Mapping[str, str]
) -> tuple[str, datetime | None]:
    """Log in with a provider, and store renewed tokens for the user in the kubeconfig at `path`.

    Returns the authorization, and when it expires if that is known.

    Raises:
        ConfigError: it failed.
    """
    source, config = str(path), dict(stored)
    if provider == "oidc":
        config.setdefault("client-secret", "")  # a public client has none
        if not {"idp-certificate-authority", "idp-certificate-authority-data"} & config.keys():
            config["idp-certificate-authority"] = certifi.where()
    document = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": {}}],
        "users": [{"name": "it", "user": {"auth-provider": {"name": provider, "config": config}}}],
    }
    configuration, loader = Configuration(), _LOADER(document, config_base_path="")
    try:
        loader.load_and_set(configuration)
    except _LOGIN_ERRORS as error:
        line = f"login with {provider}: {str(error) or type(error).__name__}"
        raise ConfigError(source, " ".join(line.split())) from error
    authorization: str | None = configuration.api_key.get("BearerToken")
    if not authorization:
        message = f"login with {provider} gave no token; use an exec plugin"
        raise ConfigError(source, message)
    expiry = _expiry_of_jwt(authorization)
    if expiry is not None and expiry <= datetime.now(UTC):
        message = f"login with {provider} has expired and was not renewed; log in again"
        raise ConfigError(source, message)
    changed = {name: config[name] for name in _TOKENS if config.get(name) != stored.get(name)}
    if changed:
        _store(path, user, changed)
    return authorization, expiry


def _store(path: Path, user: str, changed: dict[str, str]) -> None:
    """Keep renewed tokens, as kubectl does: a refresh token may be good for one use only."""
    path = path.resolve()
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        content = yaml.safe_load(path.read_bytes())
        for entry in content["users"]:
            if entry["name"] == user:
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
