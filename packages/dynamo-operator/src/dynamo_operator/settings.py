"""Every setting of the operator, in one frozen struct that is read once at start.

`settings.toml` has the flags, the environment variable and the help text of each field. `--help`, the
settings file and `docs/settings.md` are generated from both.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_type_hints

import msgspec

from kube_runtime.errors import ConfigError


class Section(msgspec.Struct, frozen=True, rename="camel"):
    """A group of settings."""


class RenderSettings(Section, frozen=True, kw_only=True):
    """Settings that change the rendered objects."""

    nats_address: str = ""
    etcd_address: str = ""
    model_express_url: str = ""
    prometheus_endpoint: str = ""
    discovery_backend: Literal["kubernetes", "etcd"] = "kubernetes"
    probe_profile: Literal["http", "documented"] = "http"
    worker_liveness_failures: int = 1
    worker_drain_period_seconds: int = 10
    mpi_secret_name: str = ""
    mpi_secret_namespace: str = ""
    mpi_secret_made: bool = False
    grove_termination_delay_seconds: int = 900
    virtual_service_gateway: str = ""
    ingress_class_name: str = ""
    ingress_tls_secret_name: str = ""
    ingress_host_suffix: str = ""
    allowed_gateways: str = ""
    ingress_allowed_classes: str = ""
    ingress_allowed_host_suffixes: str = ""
    ingress_allowed_annotations: str = ""
    cluster_domain: str = "cluster.local"
    planner_cluster_role_name: str = ""
    epp_cluster_role_name: str = ""
    dgdr_profiling_cluster_role_name: str = ""
    dgdr_profiling_nodes_cluster_role_name: str = ""
    dgdr_default_image: str = ""
    operator_image: str = ""
    profiling_copier_image: str = ""
    worker_rollout: Literal["native", "managed"] = "native"
    disruption_budget_max_unavailable: str = ""
    restricted_namespace: str = ""
    largest_object_bytes: int = 64 * 1024
    operator_account: str = ""
    debugger_image: str = "python:3.12-slim"


Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["auto", "console", "json"]
TimeFormat: TypeAlias = Literal["rfc3339", "rfc3339nano", "iso8601", "epoch", "millis", "nano"]


class MetricsSettings(Section, frozen=True, kw_only=True):
    """The metrics listener."""

    bind_address: str = ":8080"
    secure: bool = False
    access: Literal["reviewed", "anybody"] = "reviewed"
    secret_name: str = ""
    service_name: str = "dynamo-platform-dynamo-operator"
    certificate_folder: str = ""


class HealthSettings(Section, frozen=True, kw_only=True):
    """The listener of the probes."""

    bind_address: str = ":8081"


class WebhookSettings(Section, frozen=True, kw_only=True):
    """Admission webhooks."""

    enabled: bool = False
    bind_address: str = ":9443"
    certificates: Literal["self", "cert-manager", "external"] = "self"
    certificate_folder: str = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  # the reference's, a mounted Secret
    certificate_life_seconds: float = 7776000.0
    secret_name: str = "webhook-server-cert"  # noqa: S105  # a name
    service_name: str = "dynamo-platform-dynamo-operator-webhook-service"
    client_ca: str = ""
    client_name: str = ""
    namespace: str = ""
    configuration_name: str = "dynamo-platform-dynamo-operator-validating"
    graphs_elsewhere: bool = False
    migrates_stored_objects: bool = False


class LeaderElectionSettings(Section, frozen=True, kw_only=True):
    """Leader election among replicas."""

    enabled: bool = False
    id: str = "dynamo.nvidia.com"
    namespace: str = ""
    lease_duration_seconds: float = 15.0
    renew_deadline_seconds: float = 10.0
    retry_period_seconds: float = 2.0


class NamespaceScopeSettings(Section, frozen=True, kw_only=True):
    """The Lease by which a restricted operator excludes its namespace from a cluster-wide one."""

    lease_duration_seconds: float = 30.0
    renew_interval_seconds: float = 10.0


class ModelSettings(Section, frozen=True, kw_only=True):
    """Calls to workers that load and unload LoRAs."""

    calls: Literal["auto", "always", "never"] = "auto"
    call_timeout_seconds: float = 120.0
    calls_at_once: int = 20


class LoggingSettings(Section, frozen=True, kw_only=True):
    """Logs, on standard error."""

    level: Level = "info"
    format: LogFormat = "auto"
    time_format: TimeFormat = "rfc3339"


class Settings(Section, frozen=True, kw_only=True):
    """All settings of the operator."""

    render: RenderSettings = RenderSettings()
    metrics: MetricsSettings = MetricsSettings()
    health: HealthSettings = HealthSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    namespace_scope: NamespaceScopeSettings = NamespaceScopeSettings()
    webhooks: WebhookSettings = WebhookSettings()
    models: ModelSettings = ModelSettings()
    logging: LoggingSettings = LoggingSettings()
    legacy_kinds: bool = False
    kubeconfig: str = ""
    resync_period_seconds: float = 600.0
    operator_version: str = ""


class SettingField(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `settings.toml`, with the type and the default of the field of `Settings` that it names.

    `flags` are without dashes, the preferred one first.
    """

    name: str
    text: str
    flags: tuple[str, ...]
    environment: str = ""
    type_: Any = str
    default: Any = ""

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the fields that lead to it, such as `render`, `nats_address`."""
        return tuple(self.name.split("."))

    @property
    def is_duration(self) -> bool:
        """Whether the value is written as a Go duration such as `1h30m`."""
        return self.name.endswith("_seconds")

    @property
    def key(self) -> str:
        """The key in the settings file, such as `leaderElection.leaseDuration`.

        Settings of rendering are at the top level, and durations are written with a unit.
        """
        words = self.name.removeprefix("render.").removesuffix("_seconds").split("_")
        return words[0] + "".join(word[0].upper() + word[1:] for word in words[1:])


@cache
def fields() -> tuple[SettingField, ...]:
    """Every setting, in the order of the structs."""
    text = files("dynamo_operator").joinpath("settings.toml").read_bytes()
    rows = msgspec.toml.decode(text, type=dict[str, list[SettingField]])["setting"]
    by_name = {row.name: row for row in rows}
    declared = tuple(
        msgspec.structs.replace(by_name.pop(name), type_=type_, default=default)
        for name, type_, default in _declared(Settings)
    )
    if by_name:
        raise KeyError(*by_name)
    return declared


def _declared(section: type[Section], prefix: str = "") -> Iterator[tuple[str, object, object]]:
    hints = get_type_hints(section)
    for info in msgspec.structs.fields(section):
        name, hint = f"{prefix}{info.name}", hints[info.name]
        if isinstance(hint, type) and issubclass(hint, Section):
            yield from _declared(hint, f"{name}.")
        else:
            yield name, hint, info.default


_CONFIGURATION: Final = frozenset(
    (
        *("config-backend", "config-defaults", "config-frontend", "config-global", "config-peers"),
        *("config-proxy", "config-sections", "config-tcp", "config-tcp-service"),
        *("skipper-filter", "skipper-routes"),
        "getambassador.io/config",
    )
)
"""Annotations whose value is passed to a proxy as configuration: of haproxy-ingress, under any prefix, of
Skipper and of Emissary. Sources: the reference pages of these controllers."""

_SNIPPETS: Final = ("-snippet", "-snippets")
"""Suffixes of such annotations of ingress-nginx (with risk level "Critical"), NGINX's controller and
HAProxy's, under any prefix."""


_OFF = "0"
_LARGEST_PORT = 65535


class Address(NamedTuple):
    """A listen address. Host None means every interface; port 0 means any free port."""

    host: str | None
    port: int


def listen_address(source: str, text: str) -> Address | None:
    """Parse an address such as `:8080`, `127.0.0.1:8080` or `[::1]:8080`; None if it is `0`, which means off.

    Raises: ConfigError, with `source` as the setting to blame.
    """
    if text in {_OFF, ""}:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise ConfigError(source, f"expected HOST:PORT, :PORT or 0, got {text!r}")
    return Address(host.removeprefix("[").removesuffix("]") or None, int(port))


def entries(text: str) -> tuple[str, ...]:
    """Split a comma-separated list."""
    return tuple(filter(None, (entry.strip() for entry in text.split(","))))


def executes_configuration(key: str) -> bool:
    """Whether an ingress controller takes the annotation's value as configuration text."""
    name = key.rpartition("/")[2]
    return name.endswith(_SNIPPETS) or name in _CONFIGURATION or key in _CONFIGURATION


def allows_key(key: str, allowed: Iterable[str]) -> bool:
    """Whether an annotation is in the list. An entry that ends in `*` matches as a prefix."""
    return any(
        key.startswith(entry.removesuffix("*")) if entry.endswith("*") else key == entry for entry in allowed
    )


def allows_host(host: str, suffixes: Iterable[str]) -> bool:
    """Whether a host is in one of the domains.

    A wildcard for a whole domain of the list is not allowed: it would take over the hosts of all others
    there.
    """
    base = host.removeprefix("*.")
    is_wildcard = base != host
    return any(
        base.endswith(f".{suffix}") or (base == suffix and not is_wildcard)
        for suffix in (suffix.removeprefix("*").removeprefix(".").lower() for suffix in suffixes)
    )


def is_in_cluster(host: str, cluster_domain: str) -> bool:
    """Whether a host is the name of a Service in the cluster, or a wildcard that covers such names.

    A single label counts too, since every pod resolves it in its own namespace first.
    """
    lowered = host.lower().rstrip(".")
    base = lowered.removeprefix("*.")
    if base == lowered and "." not in base:
        return True
    domains = tuple(filter(None, (cluster_domain.lower().strip("."), "svc.cluster.local", "svc")))
    if any(base == domain or base.endswith(f".{domain}") for domain in domains):
        return True
    return base != lowered and any(domain.endswith(f".{base}") for domain in domains)
