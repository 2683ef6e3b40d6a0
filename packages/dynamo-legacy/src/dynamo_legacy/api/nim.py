"""DynamoNim: the image of a tag, as a build has produced it or as a user says."""

from typing import Annotated

from dynamo_graphs.api.component import GROUP, VERSION
from kube_runtime.crd.declare import Field, Quantity
from kube_runtime.kind import Kind, Object
from kube_runtime.types.meta import Resource, Struct


class BuildContext(Struct):
    """What the archive was made with."""

    bentoml_version: Annotated[str | None, Field("Version of the tool that made the archive.")] = (
        None
    )


class Model(Struct):
    """A model that the archive names; recorded, never loaded."""

    tag: Annotated[str, Field("Tag of the model.", required=True)] = ""
    download_url: Annotated[str | None, Field("Where it was available.")] = None
    size: Annotated[Quantity | None, Field("Its size.")] = None


class DynamoNimSpec(Struct):
    """The image of a tag."""

    tag: Annotated[str, Field("Tag of the graph: `<repository>:<version>`.", required=True)] = ""
    image: Annotated[str, Field("Image that components of this tag run.", required=True)] = ""
    service_name: Annotated[str | None, Field("Service that the request named; recorded.")] = None
    context: Annotated[BuildContext | None, Field("What the archive was made with; recorded.")] = (
        None
    )
    models: Annotated[tuple[Model, ...], Field("Models that the request named; recorded.")] = ()
    image_pull_secrets: Annotated[
        tuple[Object, ...],
        Field("Secrets to pull the image with.", embeds="LocalObjectReference"),
    ] = ()


class DynamoNimStatus(Struct):
    """Observed state of an image."""

    ready: Annotated[
        bool, Field("Whether components may use the image. Not written, as ever.", required=True)
    ] = False


class DynamoNim(Resource):
    """The image of a tag. Builds make it; write one by hand to run a tag from an image that exists."""

    KIND = Kind(GROUP, VERSION, "DynamoNim", "dynamonims")

    spec: Annotated[DynamoNimSpec, Field("The image of the tag.")] = DynamoNimSpec()
    status: Annotated[DynamoNimStatus, Field("Observed state of the image.")] = DynamoNimStatus()
