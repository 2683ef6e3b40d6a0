"""DynamoModel: a model, often a LoRA adapter, on the pods that serve its base model."""

from typing import Annotated, ClassVar, Literal

import msgspec

from dynamo_graphs.api.component import GROUP, VERSION
from kube_runtime.crd.declare import AGE, Column, Definition, Field, Transitions, immutable
from kube_runtime.kind import Kind
from kube_runtime.types.meta import Condition, Resource, Struct


class ModelSource(Struct):
    """Where the weights of a model are."""

    uri: Annotated[
        str,
        Field(
            "Address of the weights: `s3://bucket/path` for object storage, "
            "`hf://organisation/model@revision` for Hugging Face, or `file:///path` in the pods."
        ),
    ]


class DynamoModelSpec(Struct):
    """Which model, on top of which base model."""

    TRANSITIONS: ClassVar[Transitions] = (
        immutable("modelType", "spec.modelType"),
        immutable("baseModelName", "spec.baseModelName"),
    )

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


class EndpointInfo(Struct, kw_only=True):
    """One pod that serves the base model. What is empty or false is left out, but for `ready`."""

    address: Annotated[str, Field("Base URL of the endpoint, such as `http://10.0.1.5:9090`.")]
    pod_name: Annotated[str, Field("Name of the pod behind the endpoint.", required=False)] = ""
    pod_uid: Annotated[
        str,
        Field("Identity of that pod. What is said here is of this pod, not of one of its name."),
    ] = msgspec.field(name="podUID", default="")
    ready: Annotated[
        bool,
        Field(
            "Whether the endpoint serves the model. For a LoRA: its pod is ready, and it has answered "
            "the load request with success. For a base model: always false, since nothing is asked."
        ),
    ]
    message: Annotated[str, Field("Why the endpoint is not ready, or what went wrong last.")] = ""
    loaded_name: Annotated[str, Field("Name of the adapter that the endpoint has loaded.")] = ""
    loaded_uri: Annotated[str, Field("Where that adapter was loaded from.")] = msgspec.field(
        name="loadedURI", default=""
    )
    tried_name: Annotated[
        str,
        Field(
            "Name of an adapter that the endpoint may have loaded: it was told to load or to unload "
            "it, and has not confirmed."
        ),
    ] = ""
    tried_uri: Annotated[str, Field("Where that adapter comes from.")] = msgspec.field(
        name="triedURI", default=""
    )
    leftovers: Annotated[
        tuple[str, ...], Field("Names of adapters that are still to be unloaded.")
    ] = ()
    reloading: Annotated[
        bool, Field("Whether the adapter was taken away to be loaded from another address.")
    ] = False
    unable: Annotated[
        bool, Field("Whether the endpoint has no adapter API, so that nothing can be loaded.")
    ] = False
    fallback_covered: Annotated[
        bool,
        Field(
            "Whether a prefill worker without adapter API is made up for: other workers of its graph "
            "have the adapter."
        ),
    ] = False
    failures: Annotated[int, Field("Failed requests in a row.", format="int64")] = 0
    last_attempt_time: Annotated[
        str | None,
        Field("When the endpoint was last told to load or to unload.", format="date-time"),
    ] = None


class DynamoModelStatus(Struct, omit_defaults=False):
    """Where the model is served now."""

    endpoints: Annotated[
        tuple[EndpointInfo, ...], Field("All endpoints of the base model, ready or not.")
    ] = ()
    former_endpoints: Annotated[
        tuple[EndpointInfo, ...],
        Field(
            "Pods that are no endpoints now and may still have an adapter of this model. It is being "
            "unloaded where the pod serves another base model."
        ),
    ] = ()
    ready_pods: Annotated[
        int | None, Field("How many pods of the endpoints are Ready, for any type.", format="int64")
    ] = None
    ready_endpoints: Annotated[
        int | None, Field("How many endpoints are ready.", format="int64", required=True)
    ] = None
    total_endpoints: Annotated[
        int | None, Field("How many endpoints there are.", format="int64", required=True)
    ] = None
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
            Column("Pods", ".status.readyPods", "integer", priority=1),
            AGE,
            Column("Reason", '.status.conditions[?(@.type=="EndpointsReady")].reason', priority=1),
            Column(
                "Message", '.status.conditions[?(@.type=="EndpointsReady")].message', priority=1
            ),
        ),
    )

    spec: Annotated[
        DynamoModelSpec | None, Field("Which model, and on top of which base model.")
    ] = None
    status: Annotated[DynamoModelStatus, Field("Where the model is served, as last observed.")] = (
        DynamoModelStatus()
    )
