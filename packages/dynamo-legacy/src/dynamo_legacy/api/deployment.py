"""DynamoDeployment: a graph by its tag, with overrides for its services."""

from typing import Annotated, ClassVar

from dynamo_graphs.api.component import GROUP, VERSION
from dynamo_legacy.api.component import ComponentSpec
from kube_runtime.crd.declare import AGE, Column, Definition, Field
from kube_runtime.kind import Kind, Object
from kube_runtime.types.meta import Condition, Resource, Status, Struct


class DynamoDeploymentSpec(Struct):
    """A graph and what is different from its own configuration."""

    dynamo_nim: Annotated[
        str, Field("Tag of the graph: `<repository>:<version>`.", required=True)
    ] = ""
    services: Annotated[
        dict[str, Object],
        Field(
            "Settings by the name of the service in the graph; what is set here wins over the graph.",
            shape=ComponentSpec,
        ),
    ] = {}
    envs: Annotated[
        tuple[Object, ...],
        Field("Environment variables of all services; those of a service win.", embeds="EnvVar"),
    ] = ()


class DynamoDeploymentStatus(Status):
    """Observed state of a deployment."""

    state: Annotated[
        str | None, Field("State of all components: `pending`, `successful` or `failed`.")
    ] = None
    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...], Field("Current conditions of the deployment, one entry per type.")
    ] = ()


class DynamoDeployment(Resource):
    """A graph of the older generation, by its tag. It makes a DynamoNimDeployment for each service."""

    KIND = Kind(GROUP, VERSION, "DynamoDeployment", "dynamodeployments")
    DEFINITION: ClassVar = Definition(
        columns=(
            Column("State", ".status.state"),
            Column("Nim", ".spec.dynamoNim"),
            AGE,
            Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
            Column("Message", '.status.conditions[?(@.type=="Ready")].message', priority=1),
        ),
    )

    spec: Annotated[DynamoDeploymentSpec, Field("Desired state of the deployment.")] = (
        DynamoDeploymentSpec()
    )
    status: Annotated[DynamoDeploymentStatus, Field("Observed state of the deployment.")] = (
        DynamoDeploymentStatus()
    )
