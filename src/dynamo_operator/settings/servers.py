"""What the operator listens on: metrics, probes, webhooks."""

from typing import Annotated, Literal

from dynamo_operator.settings.declare import Section, Setting


class MetricsSettings(Section, frozen=True, kw_only=True):
    """The metrics listener."""

    bind_address: Annotated[
        str,
        Setting("Where `/metrics` listens. `0` turns it off.", ("metrics-bind-address",)),
    ] = ":8080"
    secure: Annotated[
        bool,
        Setting("Serve metrics over TLS.", ("metrics-secure",)),
    ] = False
    access: Annotated[
        Literal["reviewed", "anybody"],
        Setting(
            "Who may read metrics over TLS: `reviewed` is whoever the API server lets `get` the path "
            "`/metrics`, known by a bearer token. Without TLS it is anybody.",
            ("metrics-access",),
        ),
    ] = "reviewed"
    secret_name: Annotated[
        str,
        Setting(
            "Secret in which the operator keeps their certificate, with the authority that scrapers "
            "trust in `ca.crt`. Empty means a certificate made at start, which nobody can verify.",
            ("metrics-secret-name",),
        ),
    ] = ""
    service_name: Annotated[
        str,
        Setting("Service through which metrics are read.", ("metrics-service-name",)),
    ] = "dynamo-platform-dynamo-operator"
    certificate_folder: Annotated[
        str,
        Setting(
            "Folder with `tls.crt` and `tls.key` of others, in place of that Secret.",
            ("metrics-cert-dir",),
        ),
    ] = ""


class HealthSettings(Section, frozen=True, kw_only=True):
    """The listener of the probes."""

    bind_address: Annotated[
        str,
        Setting(
            "Where `/healthz` and `/readyz` listen. `0` turns them off.",
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
        Setting("Where they listen, over TLS.", ("webhook-bind-address",)),
    ] = ":9443"
    certificates: Annotated[
        Literal["self", "cert-manager", "external"],
        Setting(
            "Who makes the certificate: `self` is the operator, in a Secret that it keeps fresh; "
            "with the others it comes as files, and they fill the `caBundle`. A restricted operator "
            "needs one of the others: it may not write what the whole cluster asks.",
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
    client_ca: Annotated[
        str,
        Setting(
            "File with the CA certificates of the API server's client certificate for webhooks. Then a "
            "connection without a certificate of that CA is refused. Empty means that anybody may connect.",
            ("webhook-client-ca",),
        ),
    ] = ""
    client_name: Annotated[
        str,
        Setting(
            "Common name that the client certificate must have. Empty means any of that CA.",
            ("webhook-client-name",),
        ),
    ] = ""
    namespace: Annotated[
        str,
        Setting(
            "Namespace of the Services and Secrets of webhooks and metrics. Empty means the operator's "
            "own.",
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
    graphs_elsewhere: Annotated[
        bool,
        Setting(
            "Create the graphs of DynamoGraphDeploymentRequests in whatever namespace they name. Otherwise "
            "RBAC of that namespace has to let all ServiceAccounts of the request's namespace create "
            "DynamoGraphDeployments and ConfigMaps.",
            ("graphs-elsewhere",),
        ),
    ] = False
