"""The environment variables of the older generation's operator, in one frozen struct, read once at start.

`settings.toml` has the variables and the help text of each field; the reference page is generated from both.
An empty variable counts as unset. Flags of both generations are in `dynamo_operator.settings`.
"""

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from dynamo_operator.settings import RenderSettings
from kube_runtime.errors import ConfigError, ConfigErrors

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

Engine = Literal["buildkit", "buildkit-rootless", "kaniko"]
"""The engine that builds images."""


_REGISTRY = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?(=[a-z0-9.-]+)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Secret:
    """A string whose representation hides it from logs, messages and tracebacks. An empty one is false."""

    _text: str = ""

    def reveal(self) -> str:
        """The string itself."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __repr__(self) -> str:
        return "Secret(…)" if self._text else "Secret()"


class LegacySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the older generation beside the operator's own."""

    endpoint: str = ""
    cluster_name: str = "default"
    api_token: Secret = Secret()
    ingress_host_suffix: str = ""
    restricted_security_context: bool = False
    build_engine: Engine = "buildkit"
    buildkit_url: str = ""
    buildkit_client_secret: str = ""
    buildkit_cache_repository: str = ""
    kaniko_cache_repository: str = ""
    kaniko_snapshot_mode: Literal["", "full", "redo", "time"] = ""
    estargz: bool = False
    image_has_namespace: bool = False
    registry_server: str = ""
    registry_in_cluster_server: str = ""
    registry_username: str = ""
    registry_password: Secret = Secret()
    registry_secure: bool = True
    registry_repository: str = "yatai-bentos"
    known_registries: str = ""
    cluster_networks: str = ""
    builder_namespace: str = ""
    fetch_image: str = ""
    buildkit_image: str = "moby/buildkit:v0.20.2"
    buildkit_rootless_image: str = "moby/buildkit:v0.20.2-rootless"
    kaniko_image: str = ""


IGNORED = (
    "BENTO_DEPLOYMENT_ALL_NAMESPACES",
    "BENTO_DEPLOYMENT_NAMESPACES",
    "DISABLE_AUTOMATE_BENTO_IMAGE_BUILDER",
    "DISABLE_YATAI_COMPONENT_REGISTRATION",
    "DOCKER_REGISTRY_MODEL_REPOSITORY_NAME",
    "DYNAMO_SYSTEM_NAMESPACE",
    "IMAGE_BUILDERS_NAMESPACE",
    "INTERNAL_IMAGES_METRICS_TRANSFORMER",
    "INTERNAL_IMAGES_MONITOR_EXPORTER",
    "INTERNAL_IMAGES_PROXY",
    "KUBERNETES_CLUSTER_DOMAIN",
    "YATAI_DEPLOYMENT_NAMESPACE",
    "YATAI_SYSTEM_NAMESPACE",
)
"""Variables of old installations without effect."""


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `settings.toml`: a field, its environment variables, and its help text."""

    name: str
    variables: tuple[str, ...]
    text: str


@cache
def rows() -> tuple[Setting, ...]:
    """Every setting, in the order of the struct."""
    text = files("dynamo_legacy").joinpath("settings.toml").read_bytes()
    return tuple(msgspec.toml.decode(text, type=dict[str, list[Setting]])["setting"])


def read_legacy_settings(environment: Mapping[str, str]) -> LegacySettings:
    """Read the settings from the environment.

    Raises: ConfigErrors, one for each invalid variable, without secrets.
    """
    problems: list[ConfigError] = []
    values: dict[str, Any] = {}
    types = get_type_hints(LegacySettings)
    for setting in rows():
        source = next(filter(environment.get, setting.variables), "")
        if source:
            try:
                values[setting.name] = _value(setting.name, types[setting.name], environment[source])
            except ValueError as error:
                problems.append(ConfigError(source, str(error)))
    if problems:
        raise ConfigErrors("settings", problems)
    return LegacySettings(**values)


def host_suffix(settings: LegacySettings, rendering: RenderSettings) -> str:
    """The domain of hosts without one."""
    return rendering.ingress_host_suffix or settings.ingress_host_suffix or "local"


def known_registries(text: str) -> Mapping[str, str]:
    """Hosts of listed registries, each with the host that issues its tokens ("" for its own).

    Raises: ValueError if an entry is neither `HOST[:PORT]` nor `HOST[:PORT]=HOST`.
    """
    entries = [entry.strip().lower() for entry in text.split(",") if entry.strip()]
    for entry in entries:
        if not _REGISTRY.fullmatch(entry):
            raise ValueError(
                f"expected host:port or host:port=token-host, separated by commas, got {entry!r}"
            )
    return {registry: host for registry, _, host in (entry.partition("=") for entry in entries)}


def cluster_networks(text: str) -> tuple[Network, ...]:
    """Parse a list of networks. Raises: ValueError if an entry is not a network such as `198.18.0.0/15`."""
    return tuple(ipaddress.ip_network(entry.strip()) for entry in text.split(",") if entry.strip())


def _value(name: str, type_: object, text: str) -> object:
    if type_ is bool:
        if text not in ("true", "false"):
            raise ValueError(f"expected true or false, got {text!r}")
        return text == "true"
    if type_ is Secret:
        return Secret(text)
    if get_origin(type_) is Literal:
        choices = [choice for choice in get_args(type_) if choice]
        if text not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, got {text!r}")
    if check := _CHECKS.get(name):
        check(text)
    return text


def _require_url(text: str) -> None:
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username:
        raise ValueError("expected a URL without user and password, such as http://dynamo-store")


_CHECKS: Mapping[str, Callable[[str], object]] = {
    "endpoint": _require_url,
    "known_registries": known_registries,
    "cluster_networks": cluster_networks,
}
"""Raise ValueError for an invalid value of that setting."""
