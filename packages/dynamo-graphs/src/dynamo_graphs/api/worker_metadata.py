"""DynamoWorkerMetadata: the discovery record of a worker pod; written by workers, never by us."""

from typing import Annotated, ClassVar

from dynamo_graphs.api.component import GROUP, VERSION
from kube_runtime.crd.declare import AGE, Definition, Field
from kube_runtime.kind import Kind, Object
from kube_runtime.types.meta import Resource, Struct


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

    spec: Annotated[
        DynamoWorkerMetadataSpec | None, Field("Data that the worker has published.")
    ] = None
