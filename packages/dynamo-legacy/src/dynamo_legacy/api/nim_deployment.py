"""DynamoNimDeployment: one service of a graph, from the image of its tag."""

from typing import Annotated, ClassVar

from dynamo_graphs.api.component import GROUP, VERSION
from dynamo_legacy.api.component import ComponentSpec
from kube_runtime.crd.declare import AGE, Column, Definition, Field
from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Resource, Status


class DynamoNimDeploymentSpec(ComponentSpec):
    """One service and the image that it runs from."""

    dynamo_nim: Annotated[
        str,
        Field(
            "Name of the DynamoNim with the image, and of the DynamoNimRequest that builds it: the tag "
            "with `--` in place of `:`.",
            required=True,
        ),
    ] = ""
    dynamo_tag: Annotated[
        str,
        Field(
            "What is started, as `<module>:<class>`, such as `graphs.disagg:Frontend`.",
            required=True,
        ),
    ] = ""


class DynamoNimDeploymentStatus(Status):
    """Observed state of a component."""

    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the component, one entry per type.", required=True),
    ] = ()
    pod_selector: Annotated[dict[str, str], Field("Labels that select the component's pods.")] = {}


class DynamoNimDeployment(Resource):
    """One service of a graph of the older generation: a Deployment and the objects around it."""

    KIND = Kind(GROUP, VERSION, "DynamoNimDeployment", "dynamonimdeployments")
    DEFINITION: ClassVar = Definition(
        columns=(
            Column("Nim", ".spec.dynamoNim"),
            Column("Available", '.status.conditions[?(@.type=="Available")].status'),
            AGE,
            Column("Reason", '.status.conditions[?(@.type=="Available")].reason', priority=1),
            Column("Message", '.status.conditions[?(@.type=="Available")].message', priority=1),
        ),
    )

    spec: Annotated[DynamoNimDeploymentSpec, Field("Desired state of the component.")] = (
        DynamoNimDeploymentSpec()
    )
    status: Annotated[DynamoNimDeploymentStatus, Field("Observed state of the component.")] = (
        DynamoNimDeploymentStatus()
    )
