"""What a condition of an object means, from the tables of which docs/status.md is generated."""

from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.status.condition_catalog import MEANINGS
from dynamo_graphs.status.condition_meaning import Meaning
from dynamo_graphs.status.request_catalog import REQUEST_MEANINGS
from kube_runtime.types.meta import Condition

_ROWS = {
    (row.kind, type_, row.status, str(row.reason)): row
    for row in (*MEANINGS, *REQUEST_MEANINGS)
    for type_ in row.condition.split(", ")
}


def meaning(kind: str, said: Condition) -> Meaning | None:
    """What a condition of that kind means. None means: this version does not know its reason.

    The condition that sums a request up repeats the reason of the step that failed.
    """
    row = _ROWS.get((kind, said.type, said.status, said.reason))
    if row is not None or kind != DynamoGraphDeploymentRequest.KIND.name:
        return row
    same = (kind, said.status, said.reason)
    return next(
        (each for each in REQUEST_MEANINGS if same == (each.kind, each.status, each.reason)), None
    )
