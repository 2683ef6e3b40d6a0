"""A component on single nodes: one Deployment, and a second one to debug if the user wants it."""

import re

from dynamo_graphs.api import labels, names
from dynamo_graphs.render.interfaces import ComponentPlan, Orchestrator
from dynamo_graphs.render.metadata import object_metadata
from dynamo_graphs.render.objects import canonical
from dynamo_graphs.render.pod import pod_template
from kube_runtime.kind import Object

_DEFAULT_BOUND = "25%"
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def _workloads(plan: ComponentPlan) -> tuple[Object, ...]:
    """The Deployment, and its debug copy if the user wants to stop a pod that takes traffic."""
    serving = _deployment(plan, names.workload_name(plan.name), plan.replicas, is_debug=False)
    if not plan.is_on(labels.STEALING_DEBUG_MODE):
        return (canonical(serving),)
    debug = _deployment(plan, names.debug_workload_name(plan.name), 1, is_debug=True)
    return (canonical(serving), canonical(debug))


def _deployment(plan: ComponentPlan, name: str, replicas: int, *, is_debug: bool) -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": object_metadata(plan.namespace, name, plan.labels, plan.annotations),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {plan.workload_label: name}},
            "strategy": _strategy(plan),
            "template": pod_template(plan, name, is_debug=is_debug),
        },
    }


def _strategy(plan: ComponentPlan) -> Object:
    if plan.switches.get(labels.STRATEGY) == "Recreate":
        return {"type": "Recreate"}
    bounds = {
        "maxSurge": _bound(plan.annotations.get(labels.MAX_SURGE)),
        "maxUnavailable": _bound(plan.annotations.get(labels.MAX_UNAVAILABLE)),
    }
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


def _bound(text: str | None) -> object:
    """A number of pods if the text is one, else the text: a percentage."""
    if not text:
        return _DEFAULT_BOUND
    return int(text) if _INTEGER.fullmatch(text) else text


DEPLOYMENT = Orchestrator(_workloads, serving_labels={})
