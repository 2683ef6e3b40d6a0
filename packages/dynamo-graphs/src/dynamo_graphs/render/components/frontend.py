"""The frontend: the HTTP API in front of the workers."""

from dynamo_graphs.render.components import plain
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.merge import variable
from dynamo_graphs.render.probes import probes
from kube_runtime.kind import Object

HTTP_PORT = 8000

pod = plain.pod


def container(plan: ComponentPlan) -> Object:
    """The OpenAI-compatible server on its documented port."""
    return {
        "name": "main",
        "command": ["python3"],
        "args": ["-m", "dynamo.frontend"],
        "ports": [{"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"}],
        "env": [
            variable("DYNAMO_PORT", str(HTTP_PORT)),
            variable("DYN_HTTP_PORT", str(HTTP_PORT)),
        ],
        **probes("frontend", plan.settings),
    }


def service_ports() -> tuple[Object, ...]:
    """The API itself."""
    return ({"name": "http", "port": HTTP_PORT, "targetPort": "http", "protocol": "TCP"},)
