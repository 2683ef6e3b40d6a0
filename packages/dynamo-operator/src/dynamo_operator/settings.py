"""Every setting of the operator, in one frozen struct that is read once at start.

`settings.toml` has the flags, the environment variable and the help text of each field; its key in the
settings file follows from its name (`SettingField.key`). `--help`, the settings file and `docs/settings.md`
are generated from both.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.resources import files
from typing import Final, Literal, NamedTuple, TypeAlias, get_type_hints

import msgspec


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of `settings.toml`: the field's path, its help text, and its external names.

    `flags` are without dashes, the preferred one first.
    """

    name: str
    text: str
    flags: tuple[str, ...]
    environment: str = ""

    @property
    def spelling(self) -> Callable[[str], str]:
        """Converts values of the Go operator's flags."""
        return _level if self.name == "logging.level" else str


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


def _level(word: str) -> str:
    """Convert a level of zap: a verbosity such as `2`, or a name such as `warn` or `panic`."""
    if word.isdecimal():
        return "debug" if int(word) else "info"
    return {"warn": "warning", "dpanic": "error", "panic": "error", "fatal": "error"}.get(word, word)


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


class SettingField(NamedTuple):
    """One setting: its path in `Settings`, its type and its default."""

    path: tuple[str, ...]
    type_: object
    default: object
    setting: Setting

    @property
    def is_duration(self) -> bool:
        """Whether the value is written as a Go duration such as `1h30m`."""
        return self.path[-1].endswith("_seconds")

    @property
    def key(self) -> str:
        """The key in the settings file, such as `leaderElection.leaseDuration`.

        Settings of rendering are at the top level, and durations are written with a unit.
        """
        parts = self.path[1:] if self.path[0] == "render" else self.path
        return ".".join(_camel(part.removesuffix("_seconds")) for part in parts)


@cache
def fields() -> tuple[SettingField, ...]:
    """Every setting, in the order of the structs."""
    text = files("dynamo_operator").joinpath("settings.toml").read_bytes()
    rows = msgspec.toml.decode(text, type=dict[str, list[Setting]])["setting"]
    by_name = {row.name: row for row in rows}
    declared = tuple(
        SettingField(path, type_, default, by_name.pop(".".join(path)))
        for path, type_, default in _declared(Settings)
    )
    if by_name:
        raise KeyError(*by_name)
    return declared


def _declared(section: type[Section]) -> Iterator[tuple[tuple[str, ...], object, object]]:
    """The fields of the structs: path, type and default."""
    hints = get_type_hints(section)
    for info in msgspec.structs.fields(section):
        hint = hints[info.name]
        if isinstance(hint, type) and issubclass(hint, Section):
            for path, type_, default in _declared(hint):
                yield (info.name, *path), type_, default
        else:
            yield (info.name,), hint, info.default


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_SERVICES: Final = "svc"

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
    domains = tuple(filter(None, (cluster_domain.lower().strip("."), "svc.cluster.local", _SERVICES)))
    if any(base == domain or base.endswith(f".{domain}") for domain in domains):
        return True
    return base != lowered and any(domain.endswith(f".{base}") for domain in domains)
