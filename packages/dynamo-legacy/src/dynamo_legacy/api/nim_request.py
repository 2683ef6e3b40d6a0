"""DynamoNimRequest: a build of the image of a tag."""

from typing import Annotated, ClassVar

from dynamo_graphs.api.component import GROUP, VERSION, ExtraPodMetadata
from dynamo_legacy.api.nim import BuildContext, Model
from kube_runtime.crd.declare import AGE, Column, Definition, Duration, Field
from kube_runtime.kind import Kind, Object
from kube_runtime.types.meta import Condition, Resource, Status, Struct


class OciSource(Struct):
    """An artifact in a registry whose single layer is a tar."""

    ref: Annotated[str, Field("Reference of the artifact, with tag or digest.", required=True)] = ""
    secret_name: Annotated[
        str | None, Field("Secret of type `kubernetes.io/dockerconfigjson` to pull it with.")
    ] = None
    insecure: Annotated[bool, Field("Whether the registry is asked without TLS.")] = False


class S3Source(Struct):
    """An object of an S3-compatible store."""

    uri: Annotated[str, Field("`s3://<bucket>/<key>`, or `gs://`.", required=True)] = ""
    endpoint: Annotated[str | None, Field("URL of the store. Left out, that of AWS.")] = None
    secret_name: Annotated[
        str | None, Field("Secret with `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`.")
    ] = None


class HttpSource(Struct):
    """A file behind a URL."""

    url: Annotated[str, Field("URL of the archive, `http://` or `https://`.", required=True)] = ""
    header_secret_name: Annotated[
        str | None, Field("Secret whose keys and values are headers of the request.")
    ] = None
    sha256: Annotated[
        str | None,
        Field("Digest that the archive must have, in hex.", pattern="^[0-9a-f]{64}$"),
    ] = None


class PvcSource(Struct):
    """An archive or a folder on a volume."""

    claim_name: Annotated[
        str,
        Field(
            "PersistentVolumeClaim in the request's namespace; mounted read-only.", required=True
        ),
    ] = ""
    path: Annotated[
        str | None, Field("Path of an archive or a folder. Left out, the whole volume.")
    ] = None


class ConfigMapSource(Struct):
    """A small build context: the keys of a ConfigMap are its files."""

    name: Annotated[str, Field("ConfigMap in the request's namespace.", required=True)] = ""


class Source(Struct):
    """Where the archive is: exactly one of these."""

    oci: Annotated[OciSource | None, Field("An artifact in a registry.")] = None
    s3: Annotated[S3Source | None, Field("An object of an S3-compatible store.")] = None
    http: Annotated[HttpSource | None, Field("A file behind a URL.")] = None
    pvc: Annotated[PvcSource | None, Field("An archive or a folder on a volume.")] = None
    config_map: Annotated[ConfigMapSource | None, Field("The keys of a ConfigMap as files.")] = None


class DynamoNimRequestSpec(Struct):
    """What to build, from what, and how."""

    bento_tag: Annotated[str, Field("Tag to build: `<repository>:<version>`.", required=True)] = ""
    download_url: Annotated[
        str | None,
        Field(
            "Where the archive is: `http://`, `https://`, `s3://` or `gs://`. Short for `source`."
        ),
    ] = None
    source: Annotated[Source | None, Field("Where the archive is, in full.")] = None
    dockerfile: Annotated[
        str | None,
        Field(
            "Path of the Dockerfile in the archive. Left out, `env/docker/Dockerfile`, else `Dockerfile`."
        ),
    ] = None
    service_name: Annotated[str | None, Field("Copied to the DynamoNim.")] = None
    context: Annotated[BuildContext | None, Field("Copied to the DynamoNim.")] = None
    models: Annotated[tuple[Model, ...], Field("Copied to the DynamoNim.")] = ()
    image: Annotated[
        str | None,
        Field("Image to push to, and to run. Left out, its name is made from the tag."),
    ] = None
    image_build_timeout: Annotated[
        Duration | None,
        Field("Longest duration of the build, such as `30m`; an integer counts nanoseconds."),
    ] = None
    build_args: Annotated[
        tuple[str, ...], Field("Arguments of the Dockerfile, each `KEY=VALUE`.")
    ] = ()
    image_builder_extra_pod_metadata: Annotated[
        ExtraPodMetadata | None, Field("Labels and annotations of the build's pod.")
    ] = None
    image_builder_extra_pod_spec: Annotated[
        Object | None,
        Field("Fields of the build's pod; `containers` is ignored.", embeds="ExtraPodSpec"),
    ] = None
    image_builder_extra_container_env: Annotated[
        tuple[Object, ...],
        Field("Environment variables of the build's containers.", embeds="EnvVar"),
    ] = ()
    image_builder_container_resources: Annotated[
        Object | None,
        Field("Requests and limits of the container that builds.", embeds="ResourceRequirements"),
    ] = None
    docker_config_json_secret_name: Annotated[
        str | None,
        Field(
            "Secret of type `kubernetes.io/dockerconfigjson` to push and pull with; needs `image`."
        ),
    ] = None
    oci_registry_insecure: Annotated[
        bool | None, Field("Whether the registry of `image` is asked without TLS.")
    ] = None
    downloader_container_env_from: Annotated[
        tuple[Object, ...],
        Field("Credentials for the download, as environment variables.", embeds="EnvFromSource"),
    ] = ()


class DynamoNimRequestStatus(Status):
    """Observed state of a build."""

    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the build, one entry per type.", required=True),
    ] = ()


class DynamoNimRequest(Resource):
    """A build of the image of a tag: a Job that fetches the archive, builds and pushes."""

    KIND = Kind(GROUP, VERSION, "DynamoNimRequest", "dynamonimrequests")
    DEFINITION: ClassVar = Definition(
        columns=(
            Column("Bento-Tag", ".spec.bentoTag"),
            Column("Image", '.status.conditions[?(@.type=="ImageExists")].message'),
            Column("Image-Exists", '.status.conditions[?(@.type=="ImageExists")].status'),
            Column("Nim-Available", '.status.conditions[?(@.type=="DynamoNimAvailable")].status'),
            AGE,
            Column("Download-Url", ".spec.downloadUrl", priority=1),
            Column(
                "Reason", '.status.conditions[?(@.type=="DynamoNimAvailable")].reason', priority=1
            ),
            Column(
                "Message", '.status.conditions[?(@.type=="DynamoNimAvailable")].message', priority=1
            ),
        ),
    )

    spec: Annotated[DynamoNimRequestSpec, Field("What to build.")] = DynamoNimRequestSpec()
    status: Annotated[DynamoNimRequestStatus, Field("Observed state of the build.")] = (
        DynamoNimRequestStatus()
    )
