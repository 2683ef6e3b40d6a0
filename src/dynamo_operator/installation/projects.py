"""Projects that the operator uses where they are installed, and the value of the chart that lets it."""

from dynamo_operator.installation.kinds import Project
from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_operator.kube.types.inference import InferencePool
from dynamo_operator.kube.types.istio import VirtualService
from dynamo_operator.kube.types.kai import Queue
from dynamo_operator.kube.types.leaderworkerset import LeaderWorkerSet
from dynamo_operator.kube.types.volcano import PodGroup

_MONITORING = "monitoring.coreos.com"
_VALUES = "dynamo-operator"

PROJECTS = (
    Project(
        "Grove",
        (PodCliqueSet.KIND, PodClique.KIND, PodCliqueScalingGroup.KIND),
        f"{_VALUES}.optionalApis.grove",
    ),
    Project("KAI scheduler", (Queue.KIND,), f"{_VALUES}.optionalApis.kai"),
    Project(
        "LeaderWorkerSet with Volcano",
        (LeaderWorkerSet.KIND, PodGroup.KIND),
        f"{_VALUES}.optionalApis.leaderWorkerSet",
    ),
    Project("Inference extension", (InferencePool.KIND,), f"{_VALUES}.optionalApis.inferencePool"),
    Project("Istio", (VirtualService.KIND,), f"{_VALUES}.dynamo.istio.enabled"),
    Project(
        "Prometheus operator",
        (
            Kind(_MONITORING, "v1", "ServiceMonitor", "servicemonitors"),
            Kind(_MONITORING, "v1", "PodMonitor", "podmonitors"),
            Kind(_MONITORING, "v1", "PrometheusRule", "prometheusrules"),
        ),
        f"{_VALUES}.metricsService.serviceMonitor.enabled",
    ),
    Project(
        "cert-manager",
        (
            Kind("cert-manager.io", "v1", "Certificate", "certificates"),
            Kind("cert-manager.io", "v1", "Issuer", "issuers"),
        ),
        f"{_VALUES}.webhook.certManager.enabled",
    ),
)
