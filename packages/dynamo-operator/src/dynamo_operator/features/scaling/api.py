"""DynamoGraphDeploymentScalingAdapter: the scale subresource of one service of a graph."""

from typing import Annotated, ClassVar

from dynamo_operator.component.api import CATEGORIES, GROUP, VERSION
from kube_runtime.crd import Column, Definition, Field, Scale
from kube_runtime.types.meta import Condition, Kind, Resource, ScaledMetadata, Status, Struct

FIELD_MANAGER = "dynamo-operator-scaling"
"""Owns the replicas of services with an adapter in the `managedFields` of graphs."""


class ServiceReference(Struct):
    """One service of one graph."""

    name: Annotated[
        str, Field("Name of the DynamoGraphDeployment, in the adapter's own namespace.", min_length=1)
    ]
    service_name: Annotated[
        str, Field("Key of the service under `spec.services` of that graph.", min_length=1)
    ]


class DynamoGraphDeploymentScalingAdapterSpec(Struct):
    """Desired replicas of one service."""

    replicas: Annotated[
        int,
        Field(
            "Desired replicas of the service. An autoscaler sets it through the scale subresource; "
            "the operator copies it into the graph.",
            minimum=0,
            format="int32",
        ),
    ]
    dgd_ref: Annotated[ServiceReference, Field("Graph and service to scale.")]


class DynamoGraphDeploymentScalingAdapterStatus(Status):
    """Observed scale of the service, for the scale subresource."""

    replicas: Annotated[int | None, Field("Observed replicas of the component.", format="int32")] = None
    desired_replicas: Annotated[
        int | None, Field("Replicas that the adapter last wrote to the graph.", minimum=0, format="int32")
    ] = None
    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...], Field("Current conditions of the adapter, one entry per type.")
    ] = ()
    selector: Annotated[
        str | None, Field("Label selector of the component's pods, as text, for a HorizontalPodAutoscaler.")
    ] = None
    last_scale_time: Annotated[
        str | None, Field("When the adapter last changed the replicas of the component.", format="date-time")
    ] = None


def adapter_definition(target: Column) -> Definition:
    """How a version declares adapters. `target` is the column of the service or component."""
    return Definition(
        short_names=("dgdsa",),
        categories=CATEGORIES,
        columns=(
            Column("DGD", ".spec.dgdRef.name"),
            target,
            Column("REPLICAS", ".status.replicas", "integer"),
            Column("AGE", ".metadata.creationTimestamp", "date"),
            Column("DESIRED", ".spec.replicas", "integer", priority=1),
            Column("READY", '.status.conditions[?(@.type=="Ready")].status', priority=1),
            Column("REASON", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
        ),
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    )


class DynamoGraphDeploymentScalingAdapter(Resource):
    """Lets an autoscaler set the replicas of one service of a graph through the scale subresource.

    The operator creates one for every service whose `scalingAdapter.enabled` is true.
    """

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeploymentScalingAdapter", "dynamographdeploymentscalingadapters")
    DEFINITION: ClassVar = adapter_definition(Column("SERVICE", ".spec.dgdRef.serviceName"))

    metadata: ScaledMetadata = ScaledMetadata()
    spec: Annotated[
        DynamoGraphDeploymentScalingAdapterSpec | None, Field("Desired replicas of the service.")
    ] = None
    status: Annotated[DynamoGraphDeploymentScalingAdapterStatus, Field("Observed scale of the service.")] = (
        DynamoGraphDeploymentScalingAdapterStatus()
    )
