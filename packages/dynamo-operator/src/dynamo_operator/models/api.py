"""DynamoModel, and the discovery record of worker pods, which only workers write."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, ClassVar, Literal, Self

import msgspec

from dynamo_operator.component.api import CATEGORIES, GROUP, VERSION
from kube_runtime.crd import AGE, Column, Definition, Field, Transitions, immutable
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Status, Struct


class ModelSource(Struct):
    """Location of a model's weights."""

    uri: Annotated[
        str,
        Field(
            "Address of the weights: `s3://bucket/path` for object storage, "
            "`hf://organisation/model@revision` for Hugging Face, or `file:///path` in the pods."
        ),
    ]


class DynamoModelSpec(Struct):
    """Spec of a model: its name, its base model and its weights."""

    TRANSITIONS: ClassVar[Transitions] = (
        immutable("modelType", "spec.modelType"),
        immutable("baseModelName", "spec.baseModelName"),
    )

    model_name: Annotated[str, Field("Full name of the model, such as `acme/llama-3.3-70b-support-lora`.")]
    base_model_name: Annotated[
        str,
        Field(
            "Name of the base model. It is served by the components whose `modelRef.name` is the same text."
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
        Field("Location of the weights; required for a LoRA, ignored for the other types."),
    ] = None


class EndpointInfo(Struct, kw_only=True):
    """One pod that serves the base model. Empty and false fields other than `ready` are left out."""

    address: Annotated[str, Field("Base URL of the endpoint, such as `http://10.0.1.5:9090`.")]
    pod_name: Annotated[str, Field("Name of the pod behind the endpoint.", required=False)] = ""
    pod_uid: Annotated[str, Field("UID of that pod. A new pod of the same name has an entry of its own.")] = (
        msgspec.field(name="podUID", default="")
    )
    ready: Annotated[
        bool,
        Field(
            "Whether the endpoint serves the model. For a LoRA: its pod is ready, and it has answered "
            "the load request with success. For a base model: always false, since nothing is asked."
        ),
    ]
    message: Annotated[str, Field("Why the endpoint is not ready, or what went wrong last.")] = ""
    loaded_name: Annotated[str, Field("Name of the adapter that the endpoint has loaded.")] = ""
    loaded_uri: Annotated[str, Field("Address from which that adapter was loaded.")] = msgspec.field(
        name="loadedURI", default=""
    )
    tried_name: Annotated[
        str,
        Field(
            "Name of an adapter that the endpoint may have loaded: the operator sent a request to load "
            "or unload it that the endpoint has not confirmed."
        ),
    ] = ""
    tried_uri: Annotated[str, Field("Address of that adapter.")] = msgspec.field(name="triedURI", default="")
    leftovers: Annotated[tuple[str, ...], Field("Names of adapters that are still to be unloaded.")] = ()
    reloading: Annotated[
        bool, Field("Whether the adapter was unloaded to be loaded from another address.")
    ] = False
    unable: Annotated[
        bool, Field("Whether the endpoint has no adapter API, so that nothing can be loaded.")
    ] = False
    fallback_covered: Annotated[
        bool,
        Field(
            "Whether other workers cover a prefill worker without adapter API: workers of its graph "
            "have the adapter."
        ),
    ] = False
    lora_fallback_covered: Annotated[bool, Field("The same, under the name that Dynamo 1.x gives it.")] = (
        False
    )
    failures: Annotated[int, Field("Failed requests in a row.", format="int64")] = 0
    last_attempt_time: Annotated[
        str | None, Field("Time of the last load or unload request to the endpoint.", format="date-time")
    ] = None


class DynamoModelStatus(Status):
    """Observed endpoints of the model."""

    endpoints: Annotated[
        tuple[EndpointInfo, ...], Field("All endpoints of the base model, ready or not.")
    ] = ()
    former_endpoints: Annotated[
        tuple[EndpointInfo, ...],
        Field(
            "Pods that are not endpoints any more and may still have an adapter of this model. The "
            "operator unloads it where the pod serves another base model."
        ),
    ] = ()
    ready_pods: Annotated[
        int | None, Field("Number of endpoints whose pods are Ready, for any type.", format="int64")
    ] = None
    ready_endpoints: Annotated[
        int | None, Field("Number of ready endpoints.", format="int64", required=True)
    ] = None
    total_endpoints: Annotated[int | None, Field("Number of endpoints.", format="int64", required=True)] = (
        None
    )
    lora_fallback_covered_endpoints: Annotated[
        int, Field("Number of prefill workers without adapter API that other workers cover.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...], Field("Current conditions of the model, one entry per type.")
    ] = ()

    def with_conditions(self, conditions: Iterable[Condition]) -> Self:
        """Return the status with these conditions, and with the counts that the schema requires."""
        return msgspec.structs.replace(
            self,
            conditions=tuple(conditions),
            ready_endpoints=self.ready_endpoints or 0,
            total_endpoints=self.total_endpoints or 0,
        )


class DynamoModel(Resource):
    """A model on the pods of its base model; a LoRA is loaded into each of them."""

    KIND = Kind(GROUP, VERSION, "DynamoModel", "dynamomodels")
    MOST_STATUS_BYTES = 1536 * 1024  # as much as etcd stores: an entry for each pod
    DEFINITION: ClassVar = Definition(
        short_names=("dm", "dmodel"),
        categories=CATEGORIES,
        columns=(
            Column("BaseModel", ".spec.baseModelName"),
            Column("Type", ".spec.modelType"),
            Column("Ready", ".status.readyEndpoints", "integer"),
            Column("Total", ".status.totalEndpoints", "integer"),
            Column("Pods", ".status.readyPods", "integer", priority=1),
            AGE,
            Column("Reason", '.status.conditions[?(@.type=="EndpointsReady")].reason', priority=1),
            Column("Message", '.status.conditions[?(@.type=="EndpointsReady")].message', priority=1),
        ),
    )

    spec: Annotated[DynamoModelSpec | None, Field("Desired state: the model and its base model.")] = None
    status: Annotated[DynamoModelStatus, Field("Observed endpoints of the model.")] = DynamoModelStatus()


class DynamoWorkerMetadataSpec(Struct):
    """Data that a worker publishes for the other pods of its graph."""

    data: Annotated[
        Object,
        Field(
            "Endpoints, model cards and metrics endpoints of the worker, in the form that its "
            "runtime image uses. The operator does not read it.",
            free_form=True,
        ),
    ]


class DynamoWorkerMetadata(Resource):
    """Discovery record of one worker pod, named after the pod and deleted along with it.

    Workers write it and frontends read it when a graph uses Kubernetes for discovery.
    """

    KIND = Kind(GROUP, VERSION, "DynamoWorkerMetadata", "dynamoworkermetadatas")
    DEFINITION: ClassVar = Definition(short_names=("dwm",), columns=(AGE,), status=False)

    spec: Annotated[DynamoWorkerMetadataSpec | None, Field("Data that the worker has published.")] = None


class ModelReason(StrEnum):
    """Reasons of a model's conditions."""

    VALID = "ValidationPassed"
    INVALID = "ValidationFailed"
    DECODE_FAILED = "DecodeFailed"
    TOO_LARGE = "TooLarge"
    REJECTED = "RejectedByApiServer"
    SERVICES_FOUND = "ServicesFound"
    NO_SERVICES = "NoServicesFound"
    ALL_READY = "AllEndpointsReady"
    NOT_READY = "NotReady"
    NONE_READY = "NoReadyEndpoints"
    DISCOVERED = "EndpointsDiscovered"
    NO_ENDPOINTS = "NoEndpoints"
    CONFLICT = "AdapterNameTaken"
    NOT_CALLED = "CallsDisabled"
