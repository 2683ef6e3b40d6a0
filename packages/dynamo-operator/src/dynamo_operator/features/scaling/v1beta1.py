"""DynamoGraphDeploymentScalingAdapter in v1beta1. The operator computes with v1alpha1."""

from typing import Annotated, ClassVar

from dynamo_operator.component.api import GROUP
from dynamo_operator.component.v1beta1 import VERSION
from dynamo_operator.features.scaling import api
from kube_runtime.crd import Column, Field
from kube_runtime.types.meta import Condition, Kind, Resource, Struct


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


class DynamoGraphDeploymentScalingAdapterStatus(api.DynamoGraphDeploymentScalingAdapterStatus):
    """Observed scale of the component, for the scale subresource."""

    replicas: Annotated[int, Field("Observed replicas of the component.", format="int32", required=True)] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the adapter, one entry per type.", list_keys=("type",)),
    ] = ()


class DynamoGraphDeploymentScalingAdapter(Resource):
    """Lets an autoscaler set the replicas of one component of a graph through the scale subresource.

    The operator creates one for every component with a `scalingAdapter`.
    """

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeploymentScalingAdapter", "dynamographdeploymentscalingadapters")
    DEFINITION: ClassVar = api.adapter_definition(Column("COMPONENT", ".spec.dgdRef.componentName"))

    spec: Annotated[
        DynamoGraphDeploymentScalingAdapterSpec | None, Field("Desired replicas of the component.")
    ] = None
    status: Annotated[
        DynamoGraphDeploymentScalingAdapterStatus | None, Field("Observed scale of the component.")
    ] = None
