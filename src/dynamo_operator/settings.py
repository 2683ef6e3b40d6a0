"""Every setting of the operator, in one frozen struct, read once at start.

Each field carries its one text and every spelling that it has outside: its flags, its key in the
settings file (`Field.key`), its environment variable. `--help`, the settings file and
`docs/settings.md` all come from here, so the three cannot disagree.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, get_args, get_type_hints

import msgspec

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["auto", "console", "json"]
TimeFormat: TypeAlias = Literal["rfc3339", "rfc3339nano", "iso8601", "epoch", "millis", "nano"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a field is for and how it is spelt outside.

    `flags` come without dashes, the preferred one first. `spelling` turns a value that only the
    reference operator's users write into ours. `pending` says why the setting does nothing yet.
    """

    text: str
    flags: tuple[str, ...]
    environment: str = ""
    spelling: Callable[[str], str] = str
    pending: str = ""


def _level(word: str) -> str:
    """Our name of a level that zap knows: a verbosity such as `2`, `warn` or `panic`."""
    if word.isdecimal():
        return "debug" if int(word) else "info"
    return {"warn": "warning", "dpanic": "error", "panic": "error", "fatal": "error"}.get(
        word, word
    )


class Section(msgspec.Struct, frozen=True, rename="camel"):
    """A group of settings."""


class RenderSettings(Section, frozen=True, kw_only=True):
    """The settings that change what we render. Source: specification `rendering` 1.1."""

    nats_address: Annotated[
        str,
        Setting("Address of NATS, given to every component as `NATS_SERVER`.", ("natsAddr",)),
    ] = ""
    etcd_address: Annotated[
        str,
        Setting("Address of etcd, given to every component as `ETCD_ENDPOINTS`.", ("etcdAddr",)),
    ] = ""
    model_express_url: Annotated[
        str,
        Setting(
            "URL of Model Express, given to every component as `MODEL_EXPRESS_URL`.",
            ("model-express-url",),
        ),
    ] = ""
    prometheus_endpoint: Annotated[
        str,
        Setting(
            "URL of Prometheus, given to every component as `PROMETHEUS_ENDPOINT`.",
            ("prometheus-endpoint",),
        ),
    ] = ""
    discovery_backend: Annotated[
        Literal["kubernetes", "etcd"],
        Setting("How components find each other.", ("discovery-backend",)),
    ] = "kubernetes"
    probe_profile: Annotated[
        Literal["http", "documented"],
        Setting(
            "Default probes: `http` needs nothing inside the image, `documented` follows the API "
            "reference to the letter and needs curl and jq there.",
            ("probe-profile",),
        ),
    ] = "http"
    mpi_secret_name: Annotated[
        str,
        Setting(
            "Secret with the SSH keys that TensorRT-LLM workers of several nodes share.",
            ("mpi-run-ssh-secret-name",),
        ),
    ] = ""
    mpi_secret_namespace: Annotated[
        str,
        Setting("Namespace of that Secret.", ("mpi-run-ssh-secret-namespace",)),
    ] = ""
    mpi_secret_made: Annotated[
        bool,
        Setting(
            "Make that Secret, with new keys, when a graph needs it and it does not exist.",
            ("mpi-run-ssh-keygen",),
        ),
    ] = False
    grove_termination_delay_seconds: Annotated[
        int,
        Setting(
            "How long Grove waits before it ends a gang that lost its quorum. 0 leaves it to Grove.",
            ("grove-termination-delay",),
        ),
    ] = 900
    virtual_service_gateway: Annotated[
        str,
        Setting(
            "Istio gateway of VirtualServices. Without one, no VirtualService is made.",
            ("istio-virtual-service-gateway",),
        ),
    ] = ""
    ingress_class_name: Annotated[
        str,
        Setting(
            "Ingress class of frontends. With one, each frontend gets an Ingress by default.",
            ("ingress-controller-class-name",),
        ),
    ] = ""
    ingress_tls_secret_name: Annotated[
        str,
        Setting(
            "Secret with the certificate of Ingresses that name none.",
            ("ingress-controller-tls-secret-name",),
        ),
    ] = ""
    ingress_host_suffix: Annotated[
        str,
        Setting(
            "Domain of Ingresses that name no host. Empty means `local`.",
            ("ingress-host-suffix",),
        ),
    ] = ""
    planner_cluster_role_name: Annotated[
        str,
        Setting(
            "ClusterRole bound to planners, one RoleBinding per namespace. Empty binds none.",
            ("planner-cluster-role-name",),
        ),
    ] = ""
    epp_cluster_role_name: Annotated[
        str,
        Setting(
            "ClusterRole bound to endpoint pickers, one RoleBinding per namespace.",
            ("epp-cluster-role-name",),
        ),
    ] = ""
    worker_rollout: Annotated[
        Literal["native", "managed"],
        Setting(
            "How workers of new graphs are replaced: `native` by their Deployments, `managed` as "
            "generations that find only each other, which needs Dynamo 1.0 or newer.",
            ("worker-rollout",),
        ),
    ] = "native"
    disruption_budget_max_unavailable: Annotated[
        str,
        Setting(
            "Pods that an eviction may take at a time, a number or a percentage, from services with "
            "several replicas that say nothing themselves. Empty means no limit.",
            ("disruption-budget-max-unavailable",),
        ),
    ] = ""
    restricted_namespace: Annotated[
        str,
        Setting(
            "Work in this namespace only. Empty means the whole cluster.", ("restrictedNamespace",)
        ),
    ] = ""
    debugger_image: Annotated[
        str,
        Setting(
            "Image of the container that debug mode adds.",
            ("debugger-image",),
            environment="INTERNAL_IMAGES_DEBUGGER",
        ),
    ] = "python:3.12-slim"


class MetricsSettings(Section, frozen=True, kw_only=True):
    """The metrics listener."""

    bind_address: Annotated[
        str,
        Setting("Where `/metrics` listens. `0` turns it off.", ("metrics-bind-address",)),
    ] = ":8080"
    secure: Annotated[
        bool,
        Setting("Serve metrics over TLS, with a certificate made at start.", ("metrics-secure",)),
    ] = False


class HealthSettings(Section, frozen=True, kw_only=True):
    """The listener of the probes."""

    bind_address: Annotated[
        str,
        Setting(
            "Where `/healthz` and `/readyz` listen. `0` turns them off.",
            ("health-probe-bind-address",),
        ),
    ] = ":8081"


class LeaderElectionSettings(Section, frozen=True, kw_only=True):
    """Which of several operators acts."""

    enabled: Annotated[
        bool,
        Setting(
            "Act only while holding a Lease, so that several operators may run.", ("leader-elect",)
        ),
    ] = False
    id: Annotated[
        str,
        Setting("Name of the Lease.", ("leader-election-id",)),
    ] = "dynamo.nvidia.com"
    namespace: Annotated[
        str,
        Setting(
            "Namespace of the Lease. Empty means the operator's own.",
            ("leader-election-namespace",),
        ),
    ] = ""
    lease_duration_seconds: Annotated[
        float,
        Setting(
            "After how long others may take the Lease of a leader that went silent.",
            ("leader-election-lease-duration",),
        ),
    ] = 15.0
    renew_deadline_seconds: Annotated[
        float,
        Setting(
            "How long a leader that cannot renew goes on before it stops.",
            ("leader-election-renew-deadline",),
        ),
    ] = 10.0
    retry_period_seconds: Annotated[
        float,
        Setting(
            "How often the Lease is renewed, or tried for.",
            ("leader-election-retry-period",),
        ),
    ] = 2.0


class NamespaceScopeSettings(Section, frozen=True, kw_only=True):
    """The Lease that tells a cluster-wide operator to keep out of our namespace."""

    lease_duration_seconds: Annotated[
        float,
        Setting(
            "How long that Lease counts without renewal. With a restricted namespace only.",
            ("namespace-scope-lease-duration",),
        ),
    ] = 30.0
    renew_interval_seconds: Annotated[
        float,
        Setting(
            "How often that Lease is renewed. With a restricted namespace only.",
            ("namespace-scope-lease-renew-interval",),
        ),
    ] = 10.0


class WebhookSettings(Section, frozen=True, kw_only=True):
    """Admission webhooks."""

    enabled: Annotated[
        bool,
        Setting("Serve the admission webhooks.", ("enable-webhooks",)),
    ] = False
    bind_address: Annotated[
        str,
        Setting("Where they listen, over TLS.", ("webhook-bind-address",)),
    ] = ":9443"
    certificates: Annotated[
        Literal["self", "cert-manager", "external"],
        Setting(
            "Who makes the certificate: `self` is the operator, in a Secret that it keeps fresh; "
            "with the others it comes as files, and they fill the `caBundle`.",
            ("webhook-certificates",),
        ),
    ] = "self"
    certificate_folder: Annotated[
        str,
        Setting(
            "Folder with `tls.crt` and `tls.key`, where they are files.", ("webhook-cert-dir",)
        ),
    ] = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  # the reference's, a mounted Secret
    certificate_life_seconds: Annotated[
        float,
        Setting(
            "How long a certificate of `self` lives. It is replaced when a third of it is left.",
            ("webhook-certificate-life",),
        ),
    ] = 7776000.0
    secret_name: Annotated[
        str,
        Setting("Secret of `self`.", ("webhook-secret-name",)),
    ] = "webhook-server-cert"  # noqa: S105  # a name
    service_name: Annotated[
        str,
        Setting("Service through which the webhooks are called.", ("webhook-service-name",)),
    ] = "dynamo-platform-dynamo-operator-webhook-service"
    namespace: Annotated[
        str,
        Setting(
            "Namespace of that Service and Secret. Empty means the operator's own.",
            ("webhook-namespace",),
        ),
    ] = ""
    configuration_name: Annotated[
        str,
        Setting(
            "ValidatingWebhookConfiguration whose `caBundle` is looked after.",
            ("webhook-configuration-name",),
        ),
    ] = "dynamo-platform-dynamo-operator-validating"


class LoggingSettings(Section, frozen=True, kw_only=True):
    """Logs, on standard error."""

    level: Annotated[
        Level,
        Setting(
            "The least severe level that is logged.",
            ("log-level", "zap-log-level"),
            spelling=_level,
        ),
    ] = "info"
    format: Annotated[
        LogFormat,
        Setting(
            "`console` is for people, `json` for machines, `auto` is console on a terminal and json "
            "elsewhere.",
            ("log-format", "zap-encoder"),
        ),
    ] = "auto"
    time_format: Annotated[
        TimeFormat,
        Setting("How the time of an entry is written.", ("log-time-format", "zap-time-encoding")),
    ] = "rfc3339"


class Settings(Section, frozen=True, kw_only=True):
    """Everything that can be set."""

    render: RenderSettings = RenderSettings()
    metrics: MetricsSettings = MetricsSettings()
    health: HealthSettings = HealthSettings()
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    namespace_scope: NamespaceScopeSettings = NamespaceScopeSettings()
    webhooks: WebhookSettings = WebhookSettings()
    logging: LoggingSettings = LoggingSettings()
    kubeconfig: Annotated[
        str,
        Setting(
            "Kubeconfig file. Empty means the variable KUBECONFIG, else the pod's service account, "
            "else `~/.kube/config`.",
            ("kubeconfig",),
        ),
    ] = ""
    operator_version: Annotated[
        str,
        Setting(
            "Version that the operator says it has. Empty means that of the package.",
            ("operator-version",),
        ),
    ] = ""
    dgdr_profiling_cluster_role_name: Annotated[
        str,
        Setting(
            "ClusterRole bound to profiling jobs.",
            ("dgdr-profiling-cluster-role-name",),
            pending="DynamoGraphDeploymentRequests are not reconciled yet",
        ),
    ] = ""


class Field(NamedTuple):
    """One setting: where it is in `Settings`, what it takes, and its default."""

    path: tuple[str, ...]
    type_: Any
    default: Any
    setting: Setting

    @property
    def is_duration(self) -> bool:
        """Whether the value is written as a Go duration such as `1h30m`."""
        return self.path[-1].endswith("_seconds")

    @property
    def key(self) -> str:
        """The key in the settings file, such as `leaderElection.leaseDuration`.

        What rendering needs stands at the top level, and a duration carries its own unit.
        """
        parts = self.path[1:] if self.path[0] == "render" else self.path
        return ".".join(_camel(part.removesuffix("_seconds")) for part in parts)


def fields(section: type[Section] = Settings) -> Iterator[Field]:
    """Every setting, in the order of the structs."""
    hints = get_type_hints(section, include_extras=True)
    for info in msgspec.structs.fields(section):
        hint = hints[info.name]
        if isinstance(hint, type) and issubclass(hint, Section):
            yield from (field._replace(path=(info.name, *field.path)) for field in fields(hint))
        else:
            type_, setting = get_args(hint)
            yield Field((info.name,), type_, info.default, setting)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
