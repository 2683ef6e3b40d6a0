"""The spec that a DynamoNimDeployment has, and that a DynamoDeployment overrides for a service."""

from typing import Annotated

from dynamo_graphs.api.component import ExtraPodMetadata, IngressSpec, Resources
from kube_runtime.crd.declare import Field, Quantity
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct


class Autoscaling(Struct):
    """A HorizontalPodAutoscaler for the component."""

    enabled: Annotated[bool, Field("Create a HorizontalPodAutoscaler.")] = False
    min_replicas: Annotated[int | None, Field("Fewest replicas.", format="int32")] = None
    max_replicas: Annotated[int | None, Field("Most replicas.", format="int32")] = None
    behavior: Annotated[
        Object | None,
        Field("How fast it scales up and down.", embeds="HorizontalPodAutoscalerBehavior"),
    ] = None
    metrics: Annotated[
        tuple[Object, ...],
        Field("What it scales by. Left out, 80 % of the requested CPU.", embeds="MetricSpec"),
    ] = ()


class Pvc(Struct):
    """One PersistentVolumeClaim, mounted into the main container."""

    create: Annotated[
        bool | None, Field("Create the PVC unless it exists. Otherwise it has to exist.")
    ] = None
    name: Annotated[str | None, Field("Name of the PVC. Left out, the name of the component.")] = (
        None
    )
    storage_class: Annotated[
        str | None,
        Field("Storage class of a PVC that is created. Left out, the cluster's default."),
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
    deployment_selector_value: Annotated[
        str | None, Field("Its address in the runtime, or its name.")
    ] = None


class ComponentSpec(Struct):
    """The settings of one service, as a component of its own or as an override."""

    annotations: Annotated[
        dict[str, str], Field("Annotations of the pods; some switch features of the component.")
    ] = {}
    labels: Annotated[
        dict[str, str], Field("Labels of the Deployment, the Service and the pods.")
    ] = {}
    service_name: Annotated[str | None, Field("Service of the graph that the component runs.")] = (
        None
    )
    dynamo_namespace: Annotated[str | None, Field("Namespace in the Dynamo runtime.")] = None
    resources: Annotated[Resources | None, Field("Requests and limits of the main container.")] = (
        None
    )
    autoscaling: Annotated[
        Autoscaling | None, Field("A HorizontalPodAutoscaler for the component.")
    ] = None
    envs: Annotated[
        tuple[Object, ...],
        Field("Environment variables of the main container.", embeds="EnvVar"),
    ] = ()
    env_from_secret: Annotated[
        str | None,
        Field("Secret whose keys all become environment variables of the main container."),
    ] = None
    pvc: Annotated[Pvc | None, Field("A PersistentVolumeClaim for the main container.")] = None
    run_mode: Annotated[RunMode | None, Field("Accepted and ignored.")] = None
    external_services: Annotated[
        dict[str, ExternalService],
        Field("Addresses of dependencies; accepted, no process reads them."),
    ] = {}
    ingress: Annotated[IngressSpec | None, Field("Exposes the component outside the cluster.")] = (
        None
    )
    monitor_exporter: Annotated[
        Object | None,
        Field("Accepted and ignored: the image of this sidecar is gone.", free_form=True),
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
        Object | None,
        Field("Probe that decides when the main container gets requests.", embeds="Probe"),
    ] = None
    replicas: Annotated[
        int | None,
        Field("Number of replicas. Left out, it is 1.", minimum=0, format="int32"),
    ] = None
