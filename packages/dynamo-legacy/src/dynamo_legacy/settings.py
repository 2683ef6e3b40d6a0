"""The environment variables of the older generation's operator, in one frozen struct, read once at start.

Each field has its help text and its names in the environment, from which the reference page is generated. An
empty variable counts as unset. Flags of both generations are in `dynamo_operator.settings`.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec

from dynamo_operator.settings import RenderSettings
from kube_runtime.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

Engine = Literal["buildkit", "buildkit-rootless", "kaniko"]
"""The engine that builds images."""


_REGISTRY = re.compile(r"[a-z0-9.-]+(:[0-9]{1,5})?(=[a-z0-9.-]+)?", re.ASCII)


class Secret:
    """A string whose representation hides it from logs, messages and tracebacks. An empty one is false."""

    __slots__ = ("_text",)

    def __init__(self, text: str = "") -> None:
        self._text = text

    def reveal(self) -> str:
        """The string itself."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "Secret(…)" if self._text else "Secret()"


@dataclass(frozen=True, slots=True)
class Variable:
    """The help text of a field, and its names in the environment; the first one that is set counts."""

    names: tuple[str, ...]
    text: str


class LegacySettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of the older generation beside the operator's own."""

    endpoint: Annotated[
        str,
        Variable(
            ("YATAI_ENDPOINT", "API_STORE_ENDPOINT"),
            "Ask this store of archives for the configuration and the archive of a tag.",
        ),
    ] = ""
    cluster_name: Annotated[
        str,
        Variable(
            ("YATAI_CLUSTER_NAME", "API_STORE_CLUSTER_NAME"),
            "Name this cluster to the store.",
        ),
    ] = "default"
    api_token: Annotated[
        Secret,
        Variable(("YATAI_API_TOKEN", "API_STORE_API_TOKEN"), "Log in to the store with this token."),
    ] = Secret()
    ingress_host_suffix: Annotated[
        str,
        Variable(
            ("DYNAMO_INGRESS_SUFFIX",),
            "Use this domain where neither the object nor `--ingress-host-suffix` names one "
            "(default: `local`).",
        ),
    ] = ""
    restricted_security_context: Annotated[
        bool,
        Variable(
            ("ENABLE_RESTRICTED_SECURITY_CONTEXT",),
            "Run the containers of services and builds without root, privileges and capabilities.",
        ),
    ] = False
    build_engine: Annotated[
        Engine,
        Variable(
            ("BENTO_IMAGE_BUILD_ENGINE", "DYNAMO_IMAGE_BUILD_ENGINE"),
            "Select what builds images: `buildkit` needs a daemon, `buildkit-rootless` none; "
            "`kaniko` needs an image of your own.",
        ),
    ] = "buildkit"
    buildkit_url: Annotated[
        str,
        Variable(
            ("BUILDKIT_URL",),
            "Build with the daemon at this address, such as `tcp://buildkitd:1234`.",
        ),
    ] = ""
    buildkit_client_secret: Annotated[
        str,
        Variable(
            ("BUILDKIT_CLIENT_SECRET",),
            "Connect to the daemon with TLS, and the certificate of this Secret in the request's namespace: "
            "`ca.crt`, `tls.crt` and `tls.key`.",
        ),
    ] = ""
    buildkit_cache_repository: Annotated[
        str,
        Variable(("BUILDKIT_CACHE_REPO",), "Keep BuildKit's cache in this registry repository."),
    ] = ""
    kaniko_cache_repository: Annotated[
        str,
        Variable(
            ("KANIKO_CACHE_REPO",),
            "Keep kaniko's cache in this registry repository (default: that of the images).",
        ),
    ] = ""
    kaniko_snapshot_mode: Annotated[
        Literal["", "full", "redo", "time"],
        Variable(("KANIKO_SNAPSHOT_MODE",), "Pass this `--snapshot-mode` to kaniko."),
    ] = ""
    estargz: Annotated[
        bool,
        Variable(("ESTARGZ_ENABLED",), "Build images that can be started while they are pulled."),
    ] = False
    image_has_namespace: Annotated[
        bool,
        Variable(
            ("ADD_NAMESPACE_PREFIX_TO_IMAGE_NAME",),
            "Put the namespace of the request into the tags of images.",
        ),
    ] = False
    registry_server: Annotated[
        str,
        Variable(
            ("DOCKER_REGISTRY_SERVER",),
            "Push to and run from this registry, with a path if it has one.",
        ),
    ] = ""
    registry_in_cluster_server: Annotated[
        str,
        Variable(
            ("DOCKER_REGISTRY_IN_CLUSTER_SERVER",),
            "Push to and probe that registry at this address (default: the same).",
        ),
    ] = ""
    registry_username: Annotated[
        str, Variable(("DOCKER_REGISTRY_USERNAME",), "Log in to the registry as this user.")
    ] = ""
    registry_password: Annotated[
        Secret,
        Variable(("DOCKER_REGISTRY_PASSWORD",), "Log in to the registry with this password."),
    ] = Secret()
    registry_secure: Annotated[
        bool, Variable(("DOCKER_REGISTRY_SECURE",), "Speak TLS with the registry.")
    ] = True
    registry_repository: Annotated[
        str,
        Variable(
            (
                "DOCKER_REGISTRY_BENTO_REPOSITORY_NAME",
                "DOCKER_REGISTRY_DYNAMO_COMPONENTS_REPOSITORY_NAME",
            ),
            "Keep the images in this repository below the server.",
        ),
    ] = "yatai-bentos"
    known_registries: Annotated[
        str,
        Variable(
            ("DYNAMO_KNOWN_REGISTRIES",),
            "Ask these registries for images of tenants although their addresses are private, and let them "
            "issue tokens from another host, such as `harbor.corp:8443,registry.corp=gitlab.corp`.",
        ),
    ] = ""
    cluster_networks: Annotated[
        str,
        Variable(
            ("DYNAMO_CLUSTER_NETWORKS",),
            "Never connect to these networks on behalf of tenants: those of nodes, pods and Services with "
            "public addresses, such as `203.0.113.0/24,2001:db8::/32`. Private networks need no entry.",
        ),
    ] = ""
    builder_namespace: Annotated[
        str,
        Variable(
            ("YATAI_IMAGE_BUILDER_NAMESPACE", "DYNAMO_IMAGE_BUILDER_NAMESPACE"),
            "Read the settings of all builds from the ConfigMap `yatai-image-builder-config` of this "
            "namespace.",
        ),
    ] = ""
    fetch_image: Annotated[
        str,
        Variable(
            (
                "INTERNAL_IMAGES_BENTO_DOWNLOADER",
                "INTERNAL_IMAGES_DYNAMO_COMPONENTS_DOWNLOADER",
            ),
            "Fetch archives with the program `dynamo-operator` of this image (default: the operator's).",
        ),
    ] = ""
    buildkit_image: Annotated[
        str, Variable(("INTERNAL_IMAGES_BUILDKIT",), "Run `buildctl` from this image.")
    ] = "moby/buildkit:v0.20.2"
    buildkit_rootless_image: Annotated[
        str,
        Variable(("INTERNAL_IMAGES_BUILDKIT_ROOTLESS",), "Build without a daemon in this image."),
    ] = "moby/buildkit:v0.20.2-rootless"
    kaniko_image: Annotated[
        str,
        Variable(
            ("INTERNAL_IMAGES_KANIKO",),
            "Run kaniko from this image. Without it there is no kaniko.",
        ),
    ] = ""


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


class SettingVariable(NamedTuple):
    """One setting: field name, type, default and declaration."""

    name: str
    type_: Any
    default: object
    variable: Variable


def variables() -> Iterator[SettingVariable]:
    """Every setting, in the order of the struct."""
    hints = get_type_hints(LegacySettings, include_extras=True)
    for info in msgspec.structs.fields(LegacySettings):
        type_, variable = get_args(hints[info.name])
        yield SettingVariable(info.name, type_, info.default, variable)


def read_legacy_settings(environment: Mapping[str, str]) -> LegacySettings:
    """Read the settings from the environment.

    Raises: ExceptionGroup of ConfigError, one for each invalid variable, without secrets.
    """
    problems: list[ConfigError] = []
    values: dict[str, Any] = {}
    for setting in variables():
        source = next((name for name in setting.variable.names if environment.get(name)), "")
        if source:
            try:
                values[setting.name] = _value(setting, environment[source])
            except ValueError as error:
                problems.append(ConfigError(source, str(error)))
    if problems:
        raise ExceptionGroup("settings", problems)
    return LegacySettings(**values)


def host_suffix(settings: LegacySettings, rendering: RenderSettings) -> str:
    """The domain of hosts without one."""
    return rendering.ingress_host_suffix or settings.ingress_host_suffix or "local"


def known_registries(text: str) -> Mapping[str, str]:
    """Hosts of listed registries, each with the host that issues its tokens ("" for its own).

    Raises:
        ValueError: an entry is neither `HOST[:PORT]` nor `HOST[:PORT]=HOST`.
    """
    entries = [entry.strip().lower() for entry in text.split(",") if entry.strip()]
    for entry in entries:
        if not _REGISTRY.fullmatch(entry):
            raise ValueError(
                f"expected host:port or host:port=token-host, separated by commas, got {entry!r}"
            )
    return {registry: host for registry, _, host in (entry.partition("=") for entry in entries)}


def cluster_networks(text: str) -> tuple[Network, ...]:
    """Parse a list of networks.

    Raises:
        ValueError: an entry is not a network such as `198.18.0.0/15`.
    """
    return tuple(ipaddress.ip_network(entry.strip()) for entry in text.split(",") if entry.strip())


def _value(setting: SettingVariable, text: str) -> object:
    if setting.type_ is bool:
        if text not in ("true", "false"):
            raise ValueError(f"expected true or false, got {text!r}")
        return text == "true"
    if setting.type_ is Secret:
        return Secret(text)
    if get_origin(setting.type_) is Literal:
        choices = [choice for choice in get_args(setting.type_) if choice]
        if text not in choices:
            raise ValueError(f"expected one of {', '.join(choices)}, got {text!r}")
    if check := _CHECKS.get(setting.name):
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
