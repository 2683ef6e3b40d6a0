"""The API of the older generation: four kinds of `nvidia.com/v1alpha1`."""

from typing import Annotated, ClassVar

from dynamo_operator.component.api import GROUP, VERSION, ExtraPodMetadata, IngressSpec, Resources
from kube_runtime.crd import AGE, Column, Definition, Duration, Field, Quantity
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Status, Struct


class Autoscaling(Struct):
    """A HorizontalPodAutoscaler for the component."""

    enabled: Annotated[bool, Field("Create a HorizontalPodAutoscaler.")] = False
    min_replicas: Annotated[int | None, Field("Fewest replicas.", format="int32")] = None
    max_replicas: Annotated[int | None, Field("Most replicas.", format="int32")] = None
    behavior: Annotated[
        Object | None, Field("How fast it scales up and down.", embeds="HorizontalPodAutoscalerBehavior")
    ] = None
    metrics: Annotated[
        tuple[Object, ...],
        Field("What it scales by. Left out, 80 % of the requested CPU.", embeds="MetricSpec"),
    ] = ()


class Pvc(Struct):
    """One PersistentVolumeClaim, mounted into the main container."""

    create: Annotated[bool | None, Field("Create the PVC unless it exists. Otherwise it has to exist.")] = (
        None
    )
    name: Annotated[str | None, Field("Name of the PVC. Left out, the name of the component.")] = None
    storage_class: Annotated[
        str | None, Field("Storage class of a PVC that is created. Left out, the cluster's default.")
    ] = None
    size: Annotated[Quantity | None, Field("Size of a PVC that is created.")] = None
    volume_access_mode: Annotated[
        str | None, Field("Access mode of a PVC that is created, such as `ReadWriteOnce`.")
    ] = None
    mount_point: Annotated[str | None, Field("Directory in the container.")] = None


class RunMode(Struct):
    """Accepted and ignored."""

    standalone: Annotated[bool | None, Field("Accepted and ignored.")] = None


class ExternalService(Struct):
    """Address of a service that the component depends on; accepted, no process reads it."""

    deployment_selector_key: Annotated[
        str | None, Field("`dynamo` for a service of the Dynamo runtime, `name` for any other.")
    ] = None
    deployment_selector_value: Annotated[str | None, Field("Its address in the runtime, or its name.")] = None


class ComponentSpec(Struct):
    """The settings of one service, as a component of its own or as an override."""

    annotations: Annotated[
        dict[str, str], Field("Annotations of the pods; some switch features of the component.")
    ] = {}
    labels: Annotated[dict[str, str], Field("Labels of the Deployment, the Service and the pods.")] = {}
    service_name: Annotated[str | None, Field("Service of the graph that the component runs.")] = None
    dynamo_namespace: Annotated[str | None, Field("Namespace in the Dynamo runtime.")] = None
    resources: Annotated[Resources | None, Field("Requests and limits of the main container.")] = None
    autoscaling: Annotated[Autoscaling | None, Field("A HorizontalPodAutoscaler for the component.")] = None
    envs: Annotated[
        tuple[Object, ...], Field("Environment variables of the main container.", embeds="EnvVar")
    ] = ()
    env_from_secret: Annotated[
        str | None, Field("Secret whose keys all become environment variables of the main container.")
    ] = None
    pvc: Annotated[Pvc | None, Field("A PersistentVolumeClaim for the main container.")] = None
    run_mode: Annotated[RunMode | None, Field("Accepted and ignored.")] = None
    external_services: Annotated[
        dict[str, ExternalService], Field("Addresses of dependencies; accepted, no process reads them.")
    ] = {}
    ingress: Annotated[IngressSpec | None, Field("Exposes the component outside the cluster.")] = None
    monitor_exporter: Annotated[
        Object | None, Field("Accepted and ignored: the image of this sidecar is gone.", free_form=True)
    ] = None
    extra_pod_metadata: Annotated[
        ExtraPodMetadata | None, Field("Labels and annotations of the component's pods.")
    ] = None
    extra_pod_spec: Annotated[
        Object | None,
        Field(
            "Fields of the pods. `containers` are side containers; `mainContainer` is merged over the "
            "main container.",
            embeds="ExtraPodSpec",
        ),
    ] = None
    liveness_probe: Annotated[
        Object | None, Field("Probe that restarts the main container.", embeds="Probe")
    ] = None
    readiness_probe: Annotated[
        Object | None, Field("Probe that decides when the main container gets requests.", embeds="Probe")
    ] = None
    replicas: Annotated[
        int | None, Field("Number of replicas. Left out, it is 1.", minimum=0, format="int32")
    ] = None


class DynamoDeploymentSpec(Struct):
    """A graph and what is different from its own configuration."""

    dynamo_nim: Annotated[str, Field("Tag of the graph: `<repository>:<version>`.", required=True)] = ""
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

    state: Annotated[str | None, Field("State of all components: `pending`, `successful` or `failed`.")] = (
        None
    )
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
        )
    )

    spec: Annotated[DynamoDeploymentSpec, Field("Desired state of the deployment.")] = DynamoDeploymentSpec()
    status: Annotated[DynamoDeploymentStatus, Field("Observed state of the deployment.")] = (
        DynamoDeploymentStatus()
    )


class BuildContext(Struct):
    """What the archive was made with."""

    bentoml_version: Annotated[str | None, Field("Version of the tool that made the archive.")] = None


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
    context: Annotated[BuildContext | None, Field("What the archive was made with; recorded.")] = None
    models: Annotated[tuple[Model, ...], Field("Models that the request named; recorded.")] = ()
    image_pull_secrets: Annotated[
        tuple[Object, ...], Field("Secrets to pull the image with.", embeds="LocalObjectReference")
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
        str, Field("What is started, as `<module>:<class>`, such as `graphs.disagg:Frontend`.", required=True)
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
        )
    )

    spec: Annotated[DynamoNimDeploymentSpec, Field("Desired state of the component.")] = (
        DynamoNimDeploymentSpec()
    )
    status: Annotated[DynamoNimDeploymentStatus, Field("Observed state of the component.")] = (
        DynamoNimDeploymentStatus()
    )


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
        str | None, Field("Digest that the archive must have, in hex.", pattern="^[0-9a-f]{64}$")
    ] = None


class PvcSource(Struct):
    """An archive or a folder on a volume."""

    claim_name: Annotated[
        str, Field("PersistentVolumeClaim in the request's namespace; mounted read-only.", required=True)
    ] = ""
    path: Annotated[str | None, Field("Path of an archive or a folder. Left out, the whole volume.")] = None


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
        Field("Where the archive is: `http://`, `https://`, `s3://` or `gs://`. Short for `source`."),
    ] = None
    source: Annotated[Source | None, Field("Where the archive is, in full.")] = None
    dockerfile: Annotated[
        str | None,
        Field("Path of the Dockerfile in the archive. Left out, `env/docker/Dockerfile`, else `Dockerfile`."),
    ] = None
    service_name: Annotated[str | None, Field("Copied to the DynamoNim.")] = None
    context: Annotated[BuildContext | None, Field("Copied to the DynamoNim.")] = None
    models: Annotated[tuple[Model, ...], Field("Copied to the DynamoNim.")] = ()
    image: Annotated[
        str | None, Field("Image to push to, and to run. Left out, its name is made from the tag.")
    ] = None
    image_build_timeout: Annotated[
        Duration | None, Field("Longest duration of the build, such as `30m`; an integer counts nanoseconds.")
    ] = None
    build_args: Annotated[tuple[str, ...], Field("Arguments of the Dockerfile, each `KEY=VALUE`.")] = ()
    image_builder_extra_pod_metadata: Annotated[
        ExtraPodMetadata | None, Field("Labels and annotations of the build's pod.")
    ] = None
    image_builder_extra_pod_spec: Annotated[
        Object | None, Field("Fields of the build's pod; `containers` is ignored.", embeds="ExtraPodSpec")
    ] = None
    image_builder_extra_container_env: Annotated[
        tuple[Object, ...], Field("Environment variables of the build's containers.", embeds="EnvVar")
    ] = ()
    image_builder_container_resources: Annotated[
        Object | None,
        Field("Requests and limits of the container that builds.", embeds="ResourceRequirements"),
    ] = None
    docker_config_json_secret_name: Annotated[
        str | None,
        Field("Secret of type `kubernetes.io/dockerconfigjson` to push and pull with; needs `image`."),
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
        tuple[Condition, ...], Field("Current conditions of the build, one entry per type.", required=True)
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
            Column("Reason", '.status.conditions[?(@.type=="DynamoNimAvailable")].reason', priority=1),
            Column("Message", '.status.conditions[?(@.type=="DynamoNimAvailable")].message', priority=1),
        )
    )

    spec: Annotated[DynamoNimRequestSpec, Field("What to build.")] = DynamoNimRequestSpec()
    status: Annotated[DynamoNimRequestStatus, Field("Observed state of the build.")] = (
        DynamoNimRequestStatus()
    )


RESOURCES: tuple[type[Resource], ...] = (DynamoDeployment, DynamoNimDeployment, DynamoNimRequest, DynamoNim)
"""Every kind of the older generation."""
