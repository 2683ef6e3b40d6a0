"""The planner: watches the graph's metrics and scales its workers through the Kubernetes API."""

from dynamo_graphs.api.names import PLANNER_SERVICE_ACCOUNT
from dynamo_graphs.render.components import plain
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.merge import variable
from kube_runtime.kind import Object

METRICS_PORT = 9085

service_ports = plain.service_ports


def container(plan: ComponentPlan) -> Object:  # noqa: ARG001  # the shape of a role
    """A shell with the planner's metrics port; it has no probes."""
    return {
        "name": "main",
        "command": list(plain.SHELL),
        "ports": [{"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"}],
        "env": [variable("PLANNER_PROMETHEUS_PORT", str(METRICS_PORT))],
    }


def pod(plan: ComponentPlan) -> Object:  # noqa: ARG001  # the shape of a role
    """The ServiceAccount that may scale the graph."""
    return {"serviceAccountName": PLANNER_SERVICE_ACCOUNT}
