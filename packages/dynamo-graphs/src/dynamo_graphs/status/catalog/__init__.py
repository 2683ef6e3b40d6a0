"""What each reason of a condition means, and what the engineer on call should do about it.

`make docs` writes docs/status.md from this catalog, and `dynamoctl why` quotes it. Advice names what to check
first, or says that no action is needed.
"""

from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.status.catalog.component import COMPONENT_MEANINGS
from dynamo_graphs.status.catalog.graph import GRAPH_MEANINGS
from dynamo_graphs.status.catalog.model import MODEL_MEANINGS
from dynamo_graphs.status.catalog.request import REQUEST_MEANINGS
from dynamo_graphs.status.catalog.row import Meaning
from dynamo_graphs.status.catalog.scaling import SCALING_MEANINGS
from kube_runtime.types.meta import Condition

MEANINGS = (*GRAPH_MEANINGS, *COMPONENT_MEANINGS, *SCALING_MEANINGS, *MODEL_MEANINGS)
"""The rows of every kind but requests, in the order of the page."""

_ROWS = {
    (row.kind, type_, row.status, str(row.reason)): row
    for row in (*MEANINGS, *REQUEST_MEANINGS)
    for type_ in row.condition.split(", ")
}


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
