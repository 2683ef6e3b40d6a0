"""DynamoModel: a model, often a LoRA adapter, on the pods that serve its base model."""

from typing import Annotated, ClassVar, Literal

from dynamo_operator.api.component import GROUP, VERSION
from dynamo_operator.api.declare import AGE, Column, Definition, Field
from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Condition, Resource, Struct


class ModelSource(Struct):
    """Where the weights of a model are."""

    uri: Annotated[
        str,
        Field(
            "Address of the weights: `s3://bucket/path` for object storage, or "
            "`hf://organisation/model@revision` for Hugging Face."
        ),
    ]


class DynamoModelSpec(Struct):
    """Which model, on top of which base model."""

    model_name: Annotated[
        str, Field("Full name of the model, such as `acme/llama-3.3-70b-support-lora`.")
    ]
    base_model_name: Annotated[
        str,
        Field(
            "Name of the base model. It is served by the components whose `modelRef.name` is the "
            "same text."
        ),
    ]
    model_type: Annotated[
        Literal["base", "lora", "adapter"],
        Field(
            "What the model is: the base model itself, a LoRA, which is loaded into every "
            "endpoint, or another adapter.",
            default="base",
        ),
    ] = "base"
    source: Annotated[
        ModelSource | None,
        Field("Where the weights are. Needed for a LoRA, not looked at for the other types."),
    ] = None


class EndpointInfo(Struct, omit_defaults=False):
    """One pod that serves the base model."""

    address: Annotated[str, Field("Base URL of the endpoint, such as `http://10.0.1.5:9090`.")]
    pod_name: Annotated[str, Field("Name of the pod behind the endpoint.", required=False)] = ""
    ready: Annotated[
        bool,
        Field(
            "Whether the endpoint serves the model. For a LoRA: the endpoint has answered the load "
            "request with success. For a base model: always false, since nothing is asked.",
            required=True,
        ),
    ] = False


class DynamoModelStatus(Struct, omit_defaults=False):
    """Where the model is served now."""

    endpoints: Annotated[
        tuple[EndpointInfo, ...], Field("All endpoints of the base model, ready or not.")
    ] = ()
    ready_endpoints: Annotated[
        int, Field("How many endpoints are ready.", format="int64", required=True)
    ] = 0
    total_endpoints: Annotated[
        int, Field("How many endpoints there are.", format="int64", required=True)
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...], Field("What is true of the model now, one entry per type.")
    ] = ()


class DynamoModel(Resource):
    """A model on the pods of its base model; a LoRA is loaded into each of them."""

    KIND = Kind(GROUP, VERSION, "DynamoModel", "dynamomodels")
    DEFINITION: ClassVar = Definition(
        short_names=("dm", "dmodel"),
        columns=(
            Column("BaseModel", ".spec.baseModelName"),
            Column("Type", ".spec.modelType"),
            Column("Ready", ".status.readyEndpoints", "integer"),
            Column("Total", ".status.totalEndpoints", "integer"),
            AGE,
        ),
    )

    spec: Annotated[
        DynamoModelSpec | None, Field("Which model, and on top of which base model.")
    ] = None
    status: Annotated[DynamoModelStatus, Field("Where the model is served, as last observed.")] = (
        DynamoModelStatus()
    )
