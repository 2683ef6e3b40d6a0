"""A worker, for prefill, decode or both: an inference engine with a status port."""

from dynamo_operator.kube.kind import Object
from dynamo_operator.render.components import plain
from dynamo_operator.render.merge import variable
from dynamo_operator.render.probes import probes
from dynamo_operator.render.seams import ComponentPlan

pod = plain.pod
service_port = plain.service_port


def container(plan: ComponentPlan) -> Object:
    """A shell that starts the engine; health is what the engine's `generate` endpoint says."""
    return {
        "name": "main",
        "command": list(plain.SHELL),
        "ports": [{"name": "system", "containerPort": plain.SYSTEM_PORT, "protocol": "TCP"}],
        "env": [
            variable("DYN_HEALTH_CHECK_ENABLED", "false"),
            variable("DYN_SYSTEM_ENABLED", "true"),
            variable("DYN_SYSTEM_PORT", str(plain.SYSTEM_PORT)),
            variable("DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS", '["generate"]'),
        ],
        **probes("worker", plan.settings),
    }
