"""The reasons of a DynamoGraphDeploymentScalingAdapter's conditions."""

from dynamo_graphs.status.catalog import row as texts
from dynamo_graphs.status.catalog.row import Meaning
from dynamo_graphs.status.reasons import ScalingReason

_ADAPTER = "DynamoGraphDeploymentScalingAdapter"


SCALING_MEANINGS = (
    Meaning(
        *(_ADAPTER, "Ready", "True", ScalingReason.SCALED),
        "The service has the adapter's number of replicas.",
        texts.NO_ACTION,
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SCALING),
        "The service is scaling to that number.",
        "If it persists, see the graph's `Ready`.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.GRAPH_NOT_FOUND),
        "The graph in `spec.dgdRef` does not exist.",
        "Correct the name, or delete the adapter.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SERVICE_NOT_FOUND),
        "The graph has no such service; the message lists its services.",
        "Correct `spec.dgdRef.serviceName`, or delete the adapter.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.DISABLED),
        "The service has not enabled adapters: `scalingAdapter.enabled` is not true.",
        "Enable it, or delete the adapter; until then the graph's own number applies.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SUPERSEDED),
        "Another adapter, created by the operator, scales the service.",
        "Delete this one.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "False", ScalingReason.SUSPENDED),
        "The graph is suspended; the adapter keeps its number.",
        "Resume the graph.",
    ),
    Meaning(
        *(_ADAPTER, "Ready", "Unknown", ScalingReason.PAUSED),
        "The adapter or its graph is paused; the operator writes nothing.",
        "To resume, run `dynamoctl rollout resume` for it or remove the annotation "
        "`nvidia.com/paused`.",
    ),
    Meaning(_ADAPTER, "Ready", "False", ScalingReason.REJECTED, *texts.REFUSED),
    Meaning(_ADAPTER, "Ready", "False", ScalingReason.DECODE_FAILED, *texts.UNREADABLE),
    Meaning(_ADAPTER, "Ready", "False", ScalingReason.TOO_LARGE, *texts.TOO_LARGE),
)
