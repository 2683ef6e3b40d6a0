"""A component of no particular type: a shell for what the user says. Other roles build on it."""

from dynamo_graphs.render.interfaces import ComponentPlan
from kube_runtime.kind import Object

SHELL = ("/bin/sh", "-c")
SYSTEM_PORT = 9090

TERMINATION_GRACE_SECONDS = 60
"""How long a pod may take to stop, unless its spec says otherwise. Source: docs/reference."""


def container(plan: ComponentPlan) -> Object:  # noqa: ARG001  # the shape of a role
    """A container that hands its arguments to a shell."""
    return {"name": "main", "command": list(SHELL)}


def pod(plan: ComponentPlan) -> Object:  # noqa: ARG001  # the shape of a role
    """Nothing of its own."""
    return {}


def service_ports() -> tuple[Object, ...]:
    """The port of the process's own status pages."""
    return ({"name": "system", "port": SYSTEM_PORT, "targetPort": "system", "protocol": "TCP"},)
