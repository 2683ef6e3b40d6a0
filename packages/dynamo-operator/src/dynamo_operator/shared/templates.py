"""The pod templates of a workload, in units that are replaced together."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from dynamo_operator.shared.cluster import LeaderWorkerSet, PodCliqueSet
from kube_runtime.apply.drift import is_same_template
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object

BESIDE_PODS = frozenset(("autoscaling", "ingress", "replicas", "scalingAdapter"))
"""Fields of a component that do not affect its pods."""
_CLIQUE_METADATA = ("labels", "annotations")
_OF_GROUP = ("leaderTemplate", "workerTemplate", "size")

DEPLOYMENT_UNIT, GROUP_UNIT = "pods", "group"
"""Names of the only unit of a Deployment, and of a LeaderWorkerSet."""

WORKLOADS = frozenset(workload.KIND.name for workload in (Deployment, LeaderWorkerSet, PodCliqueSet))
"""Kinds with pod templates."""


# A Deployment has one. The templates of the leader and of the workers of a group belong together,
# in a LeaderWorkerSet as in a scaling group of Grove. Every other clique of a PodCliqueSet is a
# unit, so that an edit of one service never replaces the pods of another.
def units(workload: Object) -> dict[str, Object]:
    """Return the units of a workload by name, each with its templates by name."""
    spec: Object = workload["spec"]
    match workload["kind"]:
        case "Deployment":
            return {DEPLOYMENT_UNIT: {"template": spec["template"]}}
        case "LeaderWorkerSet":
            group = spec["leaderWorkerTemplate"]
            return {GROUP_UNIT: {name: group[name] for name in _OF_GROUP if name in group}}
    template = spec["template"]
    by_unit: dict[str, Object] = defaultdict(dict)
    for clique in template["cliques"]:
        metadata = {name: clique[name] for name in _CLIQUE_METADATA if clique.get(name)}
        unit = by_unit[_unit(template, clique["name"])]
        unit[clique["name"]] = {"metadata": metadata, "spec": clique["spec"]["podSpec"]}
    return by_unit


def with_units(workload: Object, kept: Mapping[str, Object]) -> Object:
    """Return the workload with these units in place of its own."""
    spec: Object = workload["spec"]
    match workload["kind"]:
        case "Deployment":
            return {**workload, "spec": {**spec, **kept.get(DEPLOYMENT_UNIT, {})}}
        case "LeaderWorkerSet":
            group = {**spec["leaderWorkerTemplate"], **kept.get(GROUP_UNIT, {})}
            return {**workload, "spec": {**spec, "leaderWorkerTemplate": group}}
    template = spec["template"]
    cliques = []
    for clique in template["cliques"]:
        cliques.append(clique)
        if one := kept.get(_unit(template, clique["name"]), {}).get(clique["name"]):
            rest = {name: value for name, value in clique.items() if name not in _CLIQUE_METADATA}
            cliques[-1] = {**rest, **one["metadata"], "spec": {**clique["spec"], "podSpec": one["spec"]}}
    return {**workload, "spec": {**spec, "template": {**template, "cliques": cliques}}}


def are_same(kind: str, ours: Object, theirs: Object) -> bool:
    """Whether two units of workloads of a kind start the same pods."""
    by_amount = kind == Deployment.KIND.name
    return ours.keys() == theirs.keys() and all(
        is_same_template(value, theirs[name], by_amount=by_amount)
        if isinstance(value, dict)
        else value == theirs[name]
        for name, value in ours.items()
    )


def mapped(unit: Object, change: Callable[[Object], Object]) -> Object:
    """Return the unit with `change` applied to each of its templates."""
    return {name: change(value) if isinstance(value, dict) else value for name, value in unit.items()}


def _unit(template: Object, clique: str) -> str:
    groups: Any = template.get("podCliqueScalingGroups") or ()
    return next((str(group["name"]) for group in groups if clique in group["cliqueNames"]), clique)
