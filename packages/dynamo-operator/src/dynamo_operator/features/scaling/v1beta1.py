"""DynamoGraphDeploymentScalingAdapter in v1beta1. The operator computes with v1alpha1."""

from typing import Annotated, ClassVar

from dynamo_operator.component.api import CATEGORIES, GROUP
from dynamo_operator.component.v1beta1 import VERSION
from kube_runtime.crd import Column, Definition, Field, Scale
from kube_runtime.types.meta import Condition, Kind, Resource, Status, Struct


class ComponentReference(Struct):
    """One component of one graph."""

    name: Annotated[
        str, Field("Name of the DynamoGraphDeployment, in the adapter's own namespace.", min_length=1)
    ]
    component_name: Annotated[str, Field("Name of the component in that graph.", min_length=1)]


class DynamoGraphDeploymentScalingAdapterSpec(Struct):
    """Desired replicas of one component."""

    replicas: Annotated[
        int,
        Field(
            "Desired replicas of the component. An autoscaler sets it through the scale subresource; "
            "the operator copies it into the graph.",
            minimum=0,
            format="int32",
        ),
    ]
    dgd_ref: Annotated[ComponentReference, Field("Graph and component to scale.")]


class DynamoGraphDeploymentScalingAdapterStatus(Status):
    """Observed scale of the component, for the scale subresource."""

    replicas: Annotated[int, Field("Observed replicas of the component.", format="int32", required=True)] = 0
    selector: Annotated[
        str | None, Field("Label selector of the component's pods, as text, for a HorizontalPodAutoscaler.")
    ] = None
    last_scale_time: Annotated[
        str | None, Field("When the adapter last changed the replicas of the component.", format="date-time")
    ] = None
    desired_replicas: Annotated[
        int | None, Field("Replicas that the adapter last wrote to the graph.", minimum=0, format="int32")
    ] = None
    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the adapter, one entry per type.", list_keys=("type",)),
    ] = ()


class DynamoGraphDeploymentScalingAdapter(Resource):
    """Lets an autoscaler set the replicas of one component of a graph through the scale subresource.

    The operator creates one for every component with a `scalingAdapter`.
    """

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeploymentScalingAdapter", "dynamographdeploymentscalingadapters")
    DEFINITION: ClassVar = Definition(
        short_names=("dgdsa",),
        categories=CATEGORIES,
        columns=(
            Column("DGD", ".spec.dgdRef.name"),
            Column("COMPONENT", ".spec.dgdRef.componentName"),
            Column("REPLICAS", ".status.replicas", "integer"),
            Column("AGE", ".metadata.creationTimestamp", "date"),
            Column("DESIRED", ".spec.replicas", "integer", priority=1),
            Column("READY", '.status.conditions[?(@.type=="Ready")].status', priority=1),
            Column("REASON", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
        ),
        scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    )

    spec: Annotated[
        DynamoGraphDeploymentScalingAdapterSpec | None, Field("Desired replicas of the component.")
    ] = None
    status: Annotated[
        DynamoGraphDeploymentScalingAdapterStatus | None, Field("Observed scale of the component.")
    ] = None
