"""Projects that the operator and its chart use where they are installed, and how each comes into use."""

from dynamo_graphs.api.optional_apis import OPTIONAL_APIS
from dynamoctl.installation.kinds import Project
from kube_runtime.kind import Kind

_MONITORING = "monitoring.coreos.com"
_VALUES = "dynamo-operator"

PROJECTS = (
    *(
        Project(
            each.title,
            each.kinds,
            f"the operator uses it unless {each.value} is false",
            granted_by=f"{each.value}=true",
        )
        for each in OPTIONAL_APIS
    ),
    Project(
        "Prometheus operator",
        (
            Kind(_MONITORING, "v1", "ServiceMonitor", "servicemonitors"),
            Kind(_MONITORING, "v1", "PodMonitor", "podmonitors"),
            Kind(_MONITORING, "v1", "PrometheusRule", "prometheusrules"),
        ),
        f"to be scraped, see {_VALUES}.metricsService.serviceMonitor.enabled",
    ),
    Project(
        "cert-manager",
        (
            Kind("cert-manager.io", "v1", "Certificate", "certificates"),
            Kind("cert-manager.io", "v1", "Issuer", "issuers"),
        ),
        f"to use it, set {_VALUES}.webhook.certManager.enabled",
    ),
)
