"""Find what nothing will run: graphs where the operator may not write, objects without a controller."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from dynamoctl.ages import counted
from dynamoctl.installation.checks import CheckResult, Finding
from kube_runtime.kind import Kind, Object
from kube_runtime.times import seconds_between

GRAPHS = "Graphs where the operator may not write"
POLICY = Kind(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicy",
    "validatingadmissionpolicies",
    namespaced=False,
)
VALUE = "dynamo-operator.namespacePolicy.releaseNamespace=false"
UNOBSERVED_SECONDS = 60.0
"""How old an object is before it counts as observed by no controller."""

_POLICY_SUFFIX = "-excluded-namespaces"
_MOST_NAMED = 5


def closed_namespaces(policies: Iterable[Object]) -> set[str]:
    """The namespaces in which a policy of the chart refuses the operator's writes."""
    return {
        namespace
        for policy in policies
        if policy["metadata"]["name"].endswith(_POLICY_SUFFIX)
        for term in policy["spec"]["matchConstraints"]["namespaceSelector"]["matchExpressions"]
        for namespace in term["values"]
    }


def graphs_in_closed(by_namespace: Mapping[str, Sequence[str]], *, is_before: bool) -> Finding:
    """Whether there are graphs in closed namespaces, which are those with an entry.

    Before an upgrade the policy is not there yet, and the namespaces are those of the operators that run.
    """
    named = [f"{space}/{name}" for space, names in sorted(by_namespace.items()) for name in names]
    if not named:
        return Finding(GRAPHS, CheckResult.OK, "none")
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    will = "after the upgrade their pods keep running, but " if is_before else ""
    text = f"{', '.join(named[:_MOST_NAMED])}{more}: {will}the operator does not change them"
    remedy = (
        "create them in another namespace, or, if they are in the namespace of the release: "
        f"helm upgrade with --set {VALUE}"
    )
    return Finding(GRAPHS, CheckResult.WARNING, text, remedy)


def unobserved(project: str, objects: Iterable[Object], now: datetime) -> Finding | None:
    """The objects without a status that are old enough to have one; None if there are none."""
    named = sorted(
        f"{body['kind']} {body['metadata'].get('namespace', '')}/{body['metadata']['name']}"
        for body in objects
        if not body.get("status") and _is_old(body, now)
    )
    if not named:
        return None
    more = f" and {counted(len(named) - 1, 'other object')}" if len(named) > 1 else ""
    text = f"no controller has observed {named[0]}{more}"
    remedy = f"check that the controller of {project} runs: its CRDs alone create no pods"
    return Finding(project, CheckResult.WARNING, text, remedy)


def _is_old(body: Object, now: datetime) -> bool:
    seconds = seconds_between(body["metadata"].get("creationTimestamp"), now)
    return seconds is not None and seconds > UNOBSERVED_SECONDS
