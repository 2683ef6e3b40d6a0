"""A worker, for prefill, decode or both: an inference engine with a status port."""

from dynamo_graphs.render.components import plain
from dynamo_graphs.render.interfaces import ComponentPlan
from dynamo_graphs.render.merge import variable
from dynamo_graphs.render.probes import probes
from kube_runtime.kind import Object

pod = plain.pod
service_ports = plain.service_ports


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
        **_drain(plan),
    }


def _drain(plan: ComponentPlan) -> Object:
    """The `lifecycle` that keeps a terminating pod serving until frontends know, or {}.

    With Kubernetes discovery a terminating pod leaves the EndpointSlices at once. Frontends learn of it a
    moment later, and runtime 0.9.0 ends on SIGTERM with requests on their way to it (figures:
    docs/real-node.md). With etcd a worker leaves discovery only when its process ends, so that waiting would
    not help.
    """
    own = plan.main_container.get("lifecycle") or {}
    if not plan.is_discovered_by_kubernetes or own.get("preStop"):
        return {}
    grace = plan.pod.get("terminationGracePeriodSeconds")
    # The API server refuses a longer sleep than the grace period; half of it stays for running requests.
    longest = (plain.TERMINATION_GRACE_SECONDS if grace is None else grace) // 2
    seconds = min(plan.settings.worker_drain_period_seconds, longest)
    return {"lifecycle": {"preStop": {"sleep": {"seconds": seconds}}}} if seconds > 0 else {}
