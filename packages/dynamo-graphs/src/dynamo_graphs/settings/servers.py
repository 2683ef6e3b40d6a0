"""What the operator listens on: metrics, probes, webhooks."""

from typing import Annotated, Literal

from dynamo_graphs.settings.declare import Section, Setting


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
