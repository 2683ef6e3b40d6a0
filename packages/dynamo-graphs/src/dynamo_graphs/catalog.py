"""What each reason of a condition means, and what the engineer on call should do about it.

The texts are in `meanings.toml`: `make docs` writes docs/status.md from them, and `dynamoctl why` quotes
them. Advice names what to check first, or says that no action is needed.
"""

from dataclasses import dataclass
from importlib.resources import files

from dynamo_operator.component.api import BlockedPod
from dynamo_operator.component.diagnosis import UNSCHEDULABLE, UNSTARTED
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.requests.conditions_v1beta1 import to_v1alpha1
from dynamo_operator.shared.conditions import GraphReason
from kube_runtime.types.meta import Condition

NO_ACTION = "No action needed."


@dataclass(frozen=True, slots=True)
class Meaning:
    """When conditions have a reason, and what to do then. `condition` may be several types, with ", "."""

    kind: str
    condition: str
    status: str
    reason: str
    text: str
    advice: str = NO_ACTION


def _read() -> tuple[Meaning, ...]:
    """The rows of the file, in its order. A row with a `remedy` has the text and the advice of that table."""
    import tomllib

    tables = tomllib.loads(files("dynamo_graphs").joinpath("meanings.toml").read_text("utf-8"))
    remedies: dict[str, dict[str, str]] = {"": {}, **tables["remedy"]}
    rows = ((row.pop("remedy", ""), row) for row in tables["meaning"])
    return tuple(Meaning(**row, **remedies[remedy]) for remedy, row in rows)


_REQUEST = DynamoGraphDeploymentRequest.KIND.name
MEANINGS = _read()
"""The rows of every kind, in the order of the page."""

_ROWS = {
    (row.kind, type_, row.status, row.reason): row for row in MEANINGS for type_ in row.condition.split(", ")
}

UNSCHEDULED_ADVICE = (
    "Wait if a terminating pod is about to free a node. If the message is about PersistentVolumeClaims, "
    "`kubectl get pvc` shows which is not bound; no node helps. Else add nodes, free GPUs, or lower the "
    "requests; a node autoscaler takes minutes."
)
"""What to do about a pod that the scheduler has found no node for just now."""
UNSTARTED_ADVICE = (
    "`kubectl describe pod NAME`: its conditions and Events name what it waits for. A container "
    "that has not started has no log."
)
"""What to do about a pod on a node that waits for something else than its containers."""


def pod_advice(reason: str, pod: BlockedPod) -> str:
    """What to do about a pod that a service reports with that reason; "" if the advice is the reason's.

    Pods that are not ready yet have nothing in common but that: one loads its model, another has no node.
    """
    if reason != GraphReason.PODS_NOT_READY:
        return ""
    if pod.reason == UNSCHEDULABLE:
        return UNSCHEDULED_ADVICE
    return UNSTARTED_ADVICE if pod.container is None or pod.reason in UNSTARTED else ""


def meaning(kind: str, condition: Condition) -> Meaning | None:
    """The row of a condition of that kind; None if this version does not know its reason.

    `Succeeded` of a request repeats the reason of the step that failed: then the row is that of the step. One
    that was written in v1beta1 has reasons of that version.
    """
    row = _ROWS.get((kind, condition.type, condition.status, condition.reason))
    if row is not None or kind != _REQUEST:
        return row
    (own,) = to_v1alpha1((condition,))
    if own != condition:
        return meaning(kind, own)
    same = (kind, condition.status, condition.reason)
    return next((row for row in MEANINGS if same == (row.kind, row.status, row.reason)), None)
