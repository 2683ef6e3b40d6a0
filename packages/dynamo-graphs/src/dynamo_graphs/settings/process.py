"""Settings of the process: listeners, webhooks, leader election, calls to workers, logs."""

from typing import Annotated, Literal, TypeAlias

from dynamo_graphs.settings.declare import Section, Setting
from kube_runtime.errors import ConfigError

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
