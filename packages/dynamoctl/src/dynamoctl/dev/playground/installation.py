"""The objects and flags of `dynamoctl install` for an operator that runs beside the cluster, not in it.

Roles, webhooks and flags are those of the chart; the pod, its Services and the addresses differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dynamoctl.installation.manifests import NAMESPACE, Choices, manifests, operator_pod
from kube_runtime.kind import Object

_IN_THE_CLUSTER = frozenset(("Deployment", "PodDisruptionBudget", "Service"))
_CONFIGURATION = "ValidatingWebhookConfiguration"
_LOOPBACK = "127.0.0.1"
HEALTH_FLAG = "--health-probe-bind-address="


@dataclass(frozen=True, slots=True)
class Ports:
    """Where the operator listens, on the loopback address."""

    webhooks: int
    health: int
    metrics: int


def objects(ports: Ports) -> Iterator[Object]:
    """The installation without the operator's pod; the API server calls its webhooks on this machine."""
    for body in manifests(Choices(NAMESPACE)):
        if body["kind"] == _CONFIGURATION:
            for hook in body["webhooks"]:
                path = hook["clientConfig"].pop("service")["path"]
                hook["clientConfig"]["url"] = f"https://{_LOOPBACK}:{ports.webhooks}{path}"
        if body["kind"] not in _IN_THE_CLUSTER:
            yield body


def account() -> str:
    """The name of the operator's ServiceAccount."""
    return str(operator_pod()["serviceAccountName"])


def flags(ports: Ports) -> tuple[str, ...]:
    """The flags of the operator: those of the chart, then those that override them."""
    (container,) = operator_pod()["containers"]
    return (
        *container["args"],
        f"--webhook-bind-address={_LOOPBACK}:{ports.webhooks}",
        f"{HEALTH_FLAG}{_LOOPBACK}:{ports.health}",
        f"--metrics-bind-address={_LOOPBACK}:{ports.metrics}",
        *("--metrics-secure=false", "--log-format=console"),
    )


PROFILING = "dynamo-playground-profiling"


def profiling_policy() -> Iterator[Object]:
    """Annotate profiling pods, so that the simulated kubelet leaves them to `profiling.py`."""
    group = "admissionregistration.k8s.io"
    annotate = 'Object{metadata: Object.metadata{annotations: {"fake-kubelet": "profiles"}}}'
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": PROFILING},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "matchConditions": [
                {
                    "name": "profiles",
                    "expression": "has(object.metadata.labels) && "
                    "'dgdr.nvidia.com/name' in object.metadata.labels",
                }
            ],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": annotate},
                }
            ],
        },
    }
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": PROFILING},
        "spec": {"policyName": PROFILING},
    }
