"""What each reason of a condition means, and what the engineer on call should do about it.

`make docs` writes docs/status.md from this catalog, and `dynamoctl why` quotes it. Advice names what to check
first, or says that no action is needed.
"""

from dynamo_graphs.api.component import BlockedPod
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.status.catalog.component import COMPONENT_MEANINGS
from dynamo_graphs.status.catalog.graph import (
    GRAPH_MEANINGS,
    UNSCHEDULED_ADVICE,
    UNSTARTED_ADVICE,
)
from dynamo_graphs.status.catalog.model import MODEL_MEANINGS
from dynamo_graphs.status.catalog.request import REQUEST_MEANINGS
from dynamo_graphs.status.catalog.row import Meaning
from dynamo_graphs.status.catalog.scaling import SCALING_MEANINGS
from dynamo_graphs.status.pods import UNSCHEDULABLE, UNSTARTED
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.types.meta import Condition

MEANINGS = (*GRAPH_MEANINGS, *COMPONENT_MEANINGS, *SCALING_MEANINGS, *MODEL_MEANINGS)
"""The rows of every kind but requests, in the order of the page."""

_ROWS = {
    (row.kind, type_, row.status, str(row.reason)): row
    for row in (*MEANINGS, *REQUEST_MEANINGS)
    for type_ in row.condition.split(", ")
}


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

    `Succeeded` of a request repeats the reason of the step that failed: then the row is that of the step.
    """
    row = _ROWS.get((kind, condition.type, condition.status, condition.reason))
    if row is not None or kind != DynamoGraphDeploymentRequest.KIND.name:
        return row
    same = (kind, condition.status, condition.reason)
    return next(
        (row for row in REQUEST_MEANINGS if same == (row.kind, row.status, row.reason)), None
    )
