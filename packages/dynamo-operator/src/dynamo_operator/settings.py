"""Every setting of the operator, in one frozen struct that is read once at start.

Each field declares its help text, its flags and its environment variable; its key in the settings file
follows from its name (`SettingField.key`). `--help`, the settings file and `docs/settings.md` are
generated from here.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple, TypeAlias, get_args, get_type_hints

import msgspec

from dynamo_operator import version
from kube_runtime.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Setting:
    """The help text and the external names of a field.

    `flags` are without dashes, the preferred one first. `spelling` converts values of the Go operator's
    flags.
    """

    text: str
    flags: tuple[str, ...]
    environment: str = ""
    spelling: Callable[[str], str] = str


class Section(msgspec.Struct, frozen=True, rename="camel"):
    """A group of settings."""


class RenderSettings(Section, frozen=True, kw_only=True):
    """Settings that change the rendered objects."""

    nats_address: Annotated[
        str,
        Setting(
            "Set `NATS_SERVER` in every component to this address. Components without it send KV "
            "events over ZMQ.",
            ("natsAddr",),
        ),
    ] = ""
    etcd_address: Annotated[
        str,
        Setting("Set `ETCD_ENDPOINTS` in every component to this address.", ("etcdAddr",)),
    ] = ""
    model_express_url: Annotated[
        str,
        Setting(
            "Set `MODEL_EXPRESS_URL` in every component to this URL.",
            ("model-express-url",),
        ),
    ] = ""
    prometheus_endpoint: Annotated[
        str,
        Setting(
            "Set `PROMETHEUS_ENDPOINT` in every component to this URL.",
            ("prometheus-endpoint",),
        ),
    ] = ""
    discovery_backend: Annotated[
        Literal["kubernetes", "etcd"],
        Setting("Select how components discover each other.", ("discovery-backend",)),
    ] = "kubernetes"
    probe_profile: Annotated[
        Literal["http", "documented"],
        Setting(
            "Select the default probes: `http` needs nothing in the image; `documented` follows "
            "the API reference to the letter and needs curl and jq in the image.",
            ("probe-profile",),
        ),
    ] = "http"
    worker_liveness_failures: Annotated[
        int,
        Setting(
            "Set `failureThreshold` of the workers' default liveness probe, which runs every 5 "
            "s. Changing it rolls all workers without a liveness probe of their own.",
            ("worker-liveness-failures",),
        ),
    ] = 1
    worker_drain_period_seconds: Annotated[
        int,
        Setting(
            "Keep a terminating worker serving this long while frontends see it leave Kubernetes "
            "discovery: a `preStop` sleep for workers without a `preStop` of their own, capped "
            "at half their grace period. Requires Kubernetes 1.30; `0s` adds none. Running "
            "workers get it when their pods change for another reason.",
            ("worker-drain-period",),
        ),
    ] = 10
    mpi_secret_name: Annotated[
        str,
        Setting(
            "Name the Secret with the SSH keys of multinode TensorRT-LLM workers.",
            ("mpi-run-ssh-secret-name",),
        ),
    ] = ""
    mpi_secret_namespace: Annotated[
        str,
        Setting(
            "Copy the SSH Secret from this namespace when the operator does not generate the keys.",
            ("mpi-run-ssh-secret-namespace",),
        ),
    ] = ""
    mpi_secret_made: Annotated[
        bool,
        Setting(
            "Generate the SSH Secret with new keys in each namespace whose graphs need it. "
            "Otherwise the operator copies one Secret to all of them, and a reader of any copy "
            "can log in to such pods everywhere.",
            ("mpi-run-ssh-keygen",),
        ),
    ] = False
    grove_termination_delay_seconds: Annotated[
        int,
        Setting(
            "Set the time Grove waits before it terminates a gang that lost its quorum. 0 keeps "
            "Grove's default.",
            ("grove-termination-delay",),
        ),
    ] = 900
    virtual_service_gateway: Annotated[
        str,
        Setting(
            "Create VirtualServices with this Istio gateway. Empty creates none.",
            ("istio-virtual-service-gateway",),
        ),
    ] = ""
    ingress_class_name: Annotated[
        str,
        Setting(
            "Create an Ingress of this class for each frontend by default.",
            ("ingress-controller-class-name",),
        ),
    ] = ""
    ingress_tls_secret_name: Annotated[
        str,
        Setting(
            "Use this TLS Secret for Ingresses that name none.",
            ("ingress-controller-tls-secret-name",),
        ),
    ] = ""
    ingress_host_suffix: Annotated[
        str,
        Setting(
            "Use this domain for Ingresses without a host (default: `local`).",
            ("ingress-host-suffix",),
        ),
    ] = ""
    allowed_gateways: Annotated[
        str,
        Setting(
            "Allow graphs these other Istio gateways, comma-separated. `*` allows all but "
            "`mesh`, which routes traffic inside the mesh and must be listed by name.",
            ("istio-allowed-gateways",),
        ),
    ] = ""
    ingress_allowed_classes: Annotated[
        str,
        Setting(
            "Allow graphs these Ingress classes besides `--ingress-controller-class-name`, "
            "comma-separated. Empty allows any.",
            ("ingress-allowed-classes",),
        ),
    ] = ""
    ingress_allowed_host_suffixes: Annotated[
        str,
        Setting(
            "Allow Ingress and VirtualService hosts in these domains besides "
            "`--ingress-host-suffix`, comma-separated. Empty allows any outside the cluster "
            "domain.",
            ("ingress-allowed-host-suffixes",),
        ),
    ] = ""
    ingress_allowed_annotations: Annotated[
        str,
        Setting(
            "Allow these annotations on Ingresses and VirtualServices, comma-separated; an entry "
            "may end in `*`. Empty allows any. Annotations that pass configuration to a "
            "controller as text, such as `nginx.ingress.kubernetes.io/configuration-snippet`, "
            "must be listed in full.",
            ("ingress-allowed-annotations",),
        ),
    ] = ""
    cluster_domain: Annotated[
        str,
        Setting(
            "Set the cluster's DNS domain. Ingress and VirtualService hosts in it are refused.",
            ("cluster-domain",),
        ),
    ] = "cluster.local"
    planner_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole to planners, one RoleBinding per namespace. Empty binds none.",
            ("planner-cluster-role-name",),
        ),
    ] = ""
    epp_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole to endpoint pickers, one RoleBinding per namespace.",
            ("epp-cluster-role-name",),
        ),
    ] = ""
    dgdr_profiling_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole to profiling Jobs, one RoleBinding per namespace.",
            ("dgdr-profiling-cluster-role-name",),
        ),
    ] = ""
    dgdr_profiling_nodes_cluster_role_name: Annotated[
        str,
        Setting(
            "Bind this ClusterRole, which reads nodes, through the ClusterRoleBinding of the "
            "same name to the ServiceAccounts of profiling Jobs with `enableGpuDiscovery`. Empty "
            "binds none.",
            ("dgdr-profiling-nodes-cluster-role-name",),
        ),
    ] = ""
    operator_image: Annotated[
        str,
        Setting(
            "Use this image, the operator's own, for the container that saves profiling results.",
            ("operator-image",),
        ),
    ] = ""
    profiling_copier_image: Annotated[
        str,
        Setting(
            "Use this image with a POSIX shell and kubectl for that container instead of the "
            "operator's.",
            ("profiling-copier-image",),
        ),
    ] = ""
    worker_rollout: Annotated[
        Literal["native", "managed"],
        Setting(
            "Select how workers of new graphs roll out: `native` by their Deployments, `managed` "
            "as revisions that discover only each other (requires Dynamo 1.0 or newer).",
            ("worker-rollout",),
        ),
    ] = "native"
    disruption_budget_max_unavailable: Annotated[
        str,
        Setting(
            "Limit concurrent evictions (a number or a percentage) of services with several "
            "replicas and no budget of their own. Empty sets no limit.",
            ("disruption-budget-max-unavailable",),
        ),
    ] = ""
    restricted_namespace: Annotated[
        str,
        Setting(
            "Watch only this namespace (default: the whole cluster).", ("restrictedNamespace",)
        ),
    ] = ""
    largest_object_bytes: Annotated[
        int,
        Setting(
            "Refuse objects of Dynamo kinds above this size: bytes of JSON without status, "
            "annotations and managed fields. Their running workloads stay as they are. A "
            "component may be one eighth larger than a graph. 0 sets no limit.",
            ("largest-object-bytes",),
        ),
    ] = 64 * 1024
    operator_account: Annotated[
        str,
        Setting(
            "Refuse graphs that run as this ServiceAccount, the operator's own, as "
            "`NAMESPACE/NAME` (default: from the API server at start, else from the operator's "
            "token).",
            ("operator-account",),
        ),
    ] = ""
    debugger_image: Annotated[
        str,
        Setting(
            "Use this image for the container that debug mode adds.",
            ("debugger-image",),
            environment="INTERNAL_IMAGES_DEBUGGER",
        ),
    ] = "python:3.12-slim"


def installed_settings() -> RenderSettings:
    """The settings of an operator that the charts installed into `dynamo-system` with their defaults."""
    name = "dynamo-platform-dynamo-operator"
    return RenderSettings(
        mpi_secret_name="mpi-run-ssh-secret",  # noqa: S106  a name
        mpi_secret_namespace="dynamo-system",  # noqa: S106  a name
        mpi_secret_made=True,
        grove_termination_delay_seconds=14_400,
        allowed_gateways="*",
        planner_cluster_role_name=f"{name}-planner",
        epp_cluster_role_name=f"{name}-epp",
        dgdr_profiling_cluster_role_name=f"{name}-dgdr-profiling",
        dgdr_profiling_nodes_cluster_role_name=f"{name}-dgdr-profiling-nodes",
        operator_image=f"dynamo-operator:{version()}",
        disruption_budget_max_unavailable="1",
        operator_account=f"dynamo-system/{name}-controller-manager",
    )


Level: TypeAlias = Literal["debug", "info", "warning", "error"]
LogFormat: TypeAlias = Literal["auto", "console", "json"]
TimeFormat: TypeAlias = Literal["rfc3339", "rfc3339nano", "iso8601", "epoch", "millis", "nano"]


class MetricsSettings(Section, frozen=True, kw_only=True):
    """The metrics listener."""

    bind_address: Annotated[
        str,
        Setting("Serve `/metrics` on this address. `0` disables it.", ("metrics-bind-address",)),
    ] = ":8080"
    secure: Annotated[
        bool,
        Setting("Serve metrics over TLS.", ("metrics-secure",)),
    ] = False
    access: Annotated[
        Literal["reviewed", "anybody"],
        Setting(
            "Select who may read metrics over TLS: `reviewed` requires a bearer token that RBAC "
            "allows to `get` the path `/metrics`. Without TLS, everyone may.",
            ("metrics-access",),
        ),
    ] = "reviewed"
    secret_name: Annotated[
        str,
        Setting(
            "Keep the metrics certificate in this Secret, with the CA that scrapers trust in "
            "`ca.crt`. Empty creates a certificate at start that clients cannot verify.",
            ("metrics-secret-name",),
        ),
    ] = ""
    service_name: Annotated[
        str,
        Setting("Name the Service for metrics.", ("metrics-service-name",)),
    ] = "dynamo-platform-dynamo-operator"
    certificate_folder: Annotated[
        str,
        Setting(
            "Read the metrics certificate from `tls.crt` and `tls.key` in this folder instead of "
            "that Secret.",
            ("metrics-cert-dir",),
        ),
    ] = ""


class HealthSettings(Section, frozen=True, kw_only=True):
    """The listener of the probes."""

    bind_address: Annotated[
        str,
        Setting(
            "Serve `/healthz` and `/readyz` on this address. `0` disables them.",
            ("health-probe-bind-address",),
        ),
    ] = ":8081"


class WebhookSettings(Section, frozen=True, kw_only=True):
    """Admission webhooks."""

    enabled: Annotated[
        bool,
        Setting("Serve the admission webhooks.", ("enable-webhooks",)),
    ] = False
    bind_address: Annotated[
        str,
        Setting("Serve webhooks on this address, over TLS.", ("webhook-bind-address",)),
    ] = ":9443"
    certificates: Annotated[
        Literal["self", "cert-manager", "external"],
        Setting(
            "Select the source of the certificate: `self` lets the operator issue and rotate it "
            "in a Secret; the others mount files and fill the `caBundle`. A restricted operator "
            "needs one of the others, because it may not write a cluster-wide webhook "
            "configuration.",
            ("webhook-certificates",),
        ),
    ] = "self"
    certificate_folder: Annotated[
        str,
        Setting(
            "Read `tls.crt` and `tls.key` from this folder when the certificate comes as files.",
            ("webhook-cert-dir",),
        ),
    ] = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108  # the reference's, a mounted Secret
    certificate_life_seconds: Annotated[
        float,
        Setting(
            "Issue `self` certificates for this long. The operator renews one when a third of it "
            "is left.",
            ("webhook-certificate-life",),
        ),
    ] = 7776000.0
    secret_name: Annotated[
        str,
        Setting("Name the Secret of the `self` certificate.", ("webhook-secret-name",)),
    ] = "webhook-server-cert"  # noqa: S105  # a name
    service_name: Annotated[
        str,
        Setting("Name the Service for webhooks.", ("webhook-service-name",)),
    ] = "dynamo-platform-dynamo-operator-webhook-service"
    client_ca: Annotated[
        str,
        Setting(
            "Refuse webhook connections without a client certificate of a CA in this file. Empty "
            "accepts every client.",
            ("webhook-client-ca",),
        ),
    ] = ""
    client_name: Annotated[
        str,
        Setting(
            "Require this common name in the client certificate. Empty accepts any of that CA.",
            ("webhook-client-name",),
        ),
    ] = ""
    namespace: Annotated[
        str,
        Setting(
            "Set the namespace of the Services and Secrets of webhooks and metrics (default: the "
            "operator's own).",
            ("webhook-namespace",),
        ),
    ] = ""
    configuration_name: Annotated[
        str,
        Setting(
            "Maintain the `caBundle` of this ValidatingWebhookConfiguration.",
            ("webhook-configuration-name",),
        ),
    ] = "dynamo-platform-dynamo-operator-validating"
    graphs_elsewhere: Annotated[
        bool,
        Setting(
            "Create graphs of DynamoGraphDeploymentRequests in any namespace they name. "
            "Otherwise RBAC of that namespace must allow all ServiceAccounts of the request's "
            "namespace to create DynamoGraphDeployments and ConfigMaps.",
            ("graphs-elsewhere",),
        ),
    ] = False


class LeaderElectionSettings(Section, frozen=True, kw_only=True):
    """Leader election among replicas."""

    enabled: Annotated[
        bool,
        Setting(
            "Act only while holding a Lease, so that several operators can run.", ("leader-elect",)
        ),
    ] = False
    id: Annotated[
        str,
        Setting("Name the Lease of the leader.", ("leader-election-id",)),
    ] = "dynamo.nvidia.com"
    namespace: Annotated[
        str,
        Setting(
            "Set the namespace of that Lease (default: the operator's own).",
            ("leader-election-namespace",),
        ),
    ] = ""
    lease_duration_seconds: Annotated[
        float,
        Setting(
            "Let another replica take the Lease this long after its last renewal.",
            ("leader-election-lease-duration",),
        ),
    ] = 15.0
    renew_deadline_seconds: Annotated[
        float,
        Setting(
            "Stop a leader that could not renew its Lease for this long.",
            ("leader-election-renew-deadline",),
        ),
    ] = 10.0
    retry_period_seconds: Annotated[
        float,
        Setting(
            "Renew or try to acquire the Lease at this interval.",
            ("leader-election-retry-period",),
        ),
    ] = 2.0


class NamespaceScopeSettings(Section, frozen=True, kw_only=True):
    """The Lease by which a restricted operator excludes its namespace from a cluster-wide one."""

    lease_duration_seconds: Annotated[
        float,
        Setting(
            "Set the duration of the Lease that marks the restricted namespace as owned.",
            ("namespace-scope-lease-duration",),
        ),
    ] = 30.0
    renew_interval_seconds: Annotated[
        float,
        Setting(
            "Renew that Lease at this interval.",
            ("namespace-scope-lease-renew-interval",),
        ),
    ] = 10.0


class ModelSettings(Section, frozen=True, kw_only=True):
    """Calls to workers that load and unload LoRAs."""

    calls: Annotated[
        Literal["auto", "always", "never"],
        Setting(
            "Call workers to load and unload LoRAs. `auto` calls only from a pod of the same "
            "cluster, because elsewhere pod addresses may belong to other machines; `always` "
            "suits an operator outside whose network reaches the pods.",
            ("model-calls",),
        ),
    ] = "auto"
    call_timeout_seconds: Annotated[
        float,
        Setting(
            "Wait this long for a worker to load or unload a LoRA, download included.",
            ("model-call-timeout",),
        ),
    ] = 120.0
    calls_at_once: Annotated[
        int,
        Setting(
            "Limit concurrent worker calls per DynamoModel.",
            ("model-calls-at-once",),
        ),
    ] = 20


def usable(settings: ModelSettings) -> ModelSettings:
    """Return the settings if calls can be made with them.

    Raises:
        ConfigError: the timeout or the limit of concurrent calls is not positive.
    """
    if settings.call_timeout_seconds <= 0:
        raise ConfigError("models.callTimeout", "must be more than 0")
    if settings.calls_at_once < 1:
        raise ConfigError("models.callsAtOnce", "must be at least 1")
    return settings


def _level(word: str) -> str:
    """Convert a level of zap: a verbosity such as `2`, or a name such as `warn` or `panic`."""
    if word.isdecimal():
        return "debug" if int(word) else "info"
    return {"warn": "warning", "dpanic": "error", "panic": "error", "fatal": "error"}.get(
        word, word
    )


class LoggingSettings(Section, frozen=True, kw_only=True):
    """Logs, on standard error."""

    level: Annotated[
        Level,
        Setting(
            "Log entries of this level and above.",
            ("log-level", "zap-log-level"),
            environment="LOG_LEVEL",
            spelling=_level,
        ),
    ] = "info"
    format: Annotated[
        LogFormat,
        Setting(
            "Format log entries: `console` for people, `json` for machines, `auto` picks console "
            "on a terminal and json elsewhere.",
            ("log-format", "zap-encoder"),
        ),
    ] = "auto"
    time_format: Annotated[
        TimeFormat,
        Setting("Format timestamps of log entries.", ("log-time-format", "zap-time-encoding")),
    ] = "rfc3339"


__all__ = [
    "HealthSettings",
    "LeaderElectionSettings",
    "LogFormat",
    "LoggingSettings",
    "MetricsSettings",
    "ModelSettings",
    "NamespaceScopeSettings",
    "RenderSettings",
    "Section",
    "Setting",
    "SettingField",
    "Settings",
    "TimeFormat",
    "WebhookSettings",
    "fields",
    "installed_settings",
]


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
    legacy_kinds: Annotated[
        bool,
        Setting(
            "Reconcile the kinds of the older generation: DynamoDeployment, DynamoNimDeployment, "
            "DynamoNimRequest.",
            ("enable-legacy-kinds",),
            environment="DYN_LEGACY_KINDS",
        ),
    ] = False
    kubeconfig: Annotated[
        str,
        Setting(
            "Use this kubeconfig file (default: KUBECONFIG, else the pod's ServiceAccount, else "
            "`~/.kube/config`).",
            ("kubeconfig",),
        ),
    ] = ""
    resync_period_seconds: Annotated[
        float,
        Setting(
            "Mean resync period.",
            ("resync-period",),
        ),
    ] = 600.0
    operator_version: Annotated[
        str,
        Setting(
            "Report this operator version (default: the package's).",
            ("operator-version",),
        ),
    ] = ""


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


def fields(section: type[Section] = Settings) -> Iterator[SettingField]:
    """Yield every setting, in the order of the structs."""
    hints = get_type_hints(section, include_extras=True)
    for info in msgspec.structs.fields(section):
        hint = hints[info.name]
        if isinstance(hint, type) and issubclass(hint, Section):
            yield from (field._replace(path=(info.name, *field.path)) for field in fields(hint))
        else:
            type_, setting = get_args(hint)
            yield SettingField((info.name,), type_, info.default, setting)


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
        key.startswith(entry.removesuffix("*")) if entry.endswith("*") else key == entry
        for entry in allowed
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
    domains = tuple(
        filter(None, (cluster_domain.lower().strip("."), "svc.cluster.local", _SERVICES))
    )
    if any(base == domain or base.endswith(f".{domain}") for domain in domains):
        return True
    return base != lowered and any(domain.endswith(f".{base}") for domain in domains)
