"""Fields of a component that have fields of their own, such as `resources`, `ingress` and `epp_config`."""

from typing import Annotated, ClassVar

import msgspec

from kube_runtime.crd.declare import Field, IntOrPercent, Quantity, Rule, Rules
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct


class ResourceItem(Struct):
    """Requests or limits of a component."""

    cpu: Annotated[str | None, Field("CPU, such as `2` or `500m`.")] = None
    memory: Annotated[str | None, Field("Memory, such as `16Gi`.")] = None
    gpu: Annotated[
        str | None,
        Field("Number of GPUs of each pod; a multinode component gets this many on each node."),
    ] = None
    gpu_type: Annotated[
        str | None,
        Field(
            "Resource name under which `gpu` is requested, such as `gpu.intel.com/xe`. Left out, "
            "it is `nvidia.com/gpu`."
        ),
    ] = None
    custom: Annotated[
        dict[str, str], Field("Further resources by their Kubernetes name, such as `rdma/ib`.")
    ] = {}


class Resources(Struct):
    """Requests, limits and resource claims of a component."""

    requests: Annotated[
        ResourceItem | None, Field("Resources that the scheduler reserves for each pod.")
    ] = None
    limits: Annotated[ResourceItem | None, Field("Most resources that each pod may use.")] = None
    claims: Annotated[
        tuple[Object, ...],
        Field("Resource claims of the pod that the main container uses.", embeds="ResourceClaim"),
    ] = ()


DEFAULT_HOST_SUFFIX = "local"
MESH = "mesh"
"""Istio's reserved gateway name for all sidecars in the mesh."""


class IngressTls(Struct):
    """The certificate of an Ingress."""

    secret_name: Annotated[
        str | None, Field("Secret of type `kubernetes.io/tls` with the certificate and its key.")
    ] = None


class IngressSpec(Struct):
    """Exposes a component outside the cluster."""

    enabled: Annotated[
        bool, Field("Create an Ingress, or a VirtualService, for the component.")
    ] = False
    host: Annotated[str | None, Field("Host name, between `hostPrefix` and `hostSuffix`.")] = None
    use_virtual_service: Annotated[
        bool, Field("Create an Istio VirtualService in place of an Ingress.")
    ] = False
    virtual_service_gateway: Annotated[
        str | None, Field("Istio gateway of the VirtualService, which is not created without it.")
    ] = None
    host_prefix: Annotated[
        str | None, Field("Text put directly in front of `host`; no separator is added.")
    ] = None
    annotations: Annotated[
        dict[str, str], Field("Annotations of the Ingress or VirtualService.")
    ] = {}
    labels: Annotated[dict[str, str], Field("Labels of the Ingress or VirtualService.")] = {}
    tls: Annotated[
        IngressTls | None, Field("Certificate with which the Ingress answers HTTPS.")
    ] = None
    host_suffix: Annotated[
        str | None, Field("Domain after `host` and a dot. Left out, it is `local`.")
    ] = None
    ingress_controller_class_name: Annotated[
        str | None,
        Field("Ingress class, such as `nginx`. Without it no Ingress is created."),
    ] = None


def ingress_host(ingress: IngressSpec) -> str:
    """Return the host name of an Ingress: prefix and host without a separator, a dot, the suffix."""
    suffix = ingress.host_suffix or DEFAULT_HOST_SUFFIX
    return f"{ingress.host_prefix or ''}{ingress.host or ''}.{suffix}"


class EppPlugin(Struct):
    """One plugin of the endpoint picker."""

    type: Annotated[str, Field("Type of the plugin, under which the endpoint picker knows it.")]
    name: Annotated[
        str | None, Field("Name that scheduling profiles refer to. Left out, it is the type.")
    ] = None
    parameters: Annotated[
        msgspec.Raw | None, Field("Parameters of the plugin, in its own form.", free_form=True)
    ] = None


class EppPluginReference(Struct):
    """One use of a plugin in a scheduling profile."""

    plugin_ref: Annotated[str, Field("Name of the plugin.")]
    weight: Annotated[
        int | None, Field("Weight of the plugin's score against the others.", format="int64")
    ] = None


class EppSchedulingProfile(Struct):
    """A named selection of plugins."""

    name: Annotated[str, Field("Name of the profile.")]
    plugins: Annotated[
        tuple[EppPluginReference, ...], Field("Plugins that take part, in order.", required=True)
    ] = ()


class EndpointPickerConfig(Struct):
    """An EndpointPickerConfig document of the Gateway API inference extension."""

    # Another project's document: only fields that every version requires are declared, others are kept.

    plugins: Annotated[
        tuple[EppPlugin, ...], Field("Plugins that are created.", required=True)
    ] = ()
    scheduling_profiles: Annotated[
        tuple[EppSchedulingProfile, ...],
        Field("Profiles by which requests are scheduled.", required=True),
    ] = ()
    api_version: Annotated[
        str | None,
        Field("API version of the document, such as `inference.networking.x-k8s.io/v1alpha1`."),
    ] = None
    kind: Annotated[str | None, Field("Kind of the document, `EndpointPickerConfig`.")] = None


class EppConfig(Struct):
    """Configuration of an endpoint picker: a ConfigMap or the document itself, not both."""

    config_map_ref: Annotated[
        Object | None,
        Field("Key of a ConfigMap that holds the document.", embeds="ConfigMapKeySelector"),
    ] = None
    config: Annotated[
        Object | None,
        Field(
            "The document itself; the operator keeps it in a ConfigMap of its own. Fields that are "
            "not listed here are kept.",
            shape=EndpointPickerConfig,
            free_form=True,
        ),
    ] = None


class VolumeMount(Struct):
    """A PersistentVolumeClaim mounted into the main container."""

    name: Annotated[
        str, Field("Name of the PVC; for a graph, one of `spec.pvcs`.", required=True)
    ] = ""
    mount_point: Annotated[
        str | None,
        Field(
            "Directory in the container. A compilation cache has a default for each backend; any "
            "other volume needs it."
        ),
    ] = None
    use_as_compilation_cache: Annotated[
        bool,
        Field(
            "Store the backend's compiled kernels on this volume, so that pods start faster the "
            "next time.",
            default=False,
        ),
    ] = False


class ModelReference(Struct):
    """The base model that a component serves."""

    name: Annotated[
        str,
        Field(
            "Name of the base model. DynamoModels with the same `baseModelName` find the "
            "component's pods through a headless Service."
        ),
    ]
    revision: Annotated[
        str | None, Field("Revision of the model, for your own records; nothing reads it.")
    ] = None


class SharedMemory(Struct):
    """The memory-backed volume at /dev/shm."""

    disabled: Annotated[bool, Field("Mount no such volume.")] = False
    size: Annotated[
        Quantity | None,
        Field(
            "Size of the volume; required unless it is disabled. Without `sharedMemory` it is `8Gi`."
        ),
    ] = None


class ExtraPodMetadata(Struct):
    """Labels and annotations of the pods."""

    annotations: Annotated[dict[str, str], Field("Annotations of the pods.")] = {}
    labels: Annotated[
        dict[str, str], Field("Labels of the pods; those that the operator selects by win.")
    ] = {}


class Multinode(Struct):
    """A component that spans several nodes."""

    node_count: Annotated[
        int,
        Field(
            "Number of nodes of each replica. The GPUs of one replica are this number times "
            "`resources.limits.gpu`.",
            minimum=2,
            format="int32",
            default=2,
            required=True,
        ),
    ] = 2


class DisruptionBudget(Struct):
    """How many pods of a component an eviction, such as the drain of a node, may take at a time."""

    RULES: ClassVar[Rules] = (
        Rule(
            "!(has(self.minAvailable) && has(self.maxUnavailable))",
            "minAvailable and maxUnavailable cannot both be set",
            lambda budget: not ("minAvailable" in budget and "maxUnavailable" in budget),
        ),
    )

    min_available: Annotated[
        IntOrPercent | None,
        Field("Pods that must stay: a number, or a percentage of the replicas."),
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None,
        Field("Pods that may be missing: a number, or a percentage of the replicas."),
    ] = None


class ScalingAdapterSwitch(Struct):
    """Whether a scaling adapter owns the replicas."""

    enabled: Annotated[
        bool,
        Field(
            "Create a DynamoGraphDeploymentScalingAdapter for the service and let it own `replicas`. "
            "Otherwise set `replicas` yourself.",
            default=False,
        ),
    ] = False


class Autoscaling(Struct):
    """Deprecated and ignored; use `scalingAdapter` with an autoscaler of your choice."""

    enabled: Annotated[bool | None, Field("Deprecated and ignored.")] = None
    min_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    max_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    behavior: Annotated[
        Object | None, Field("Deprecated and ignored.", embeds="HorizontalPodAutoscalerBehavior")
    ] = None
    metrics: Annotated[
        tuple[Object, ...], Field("Deprecated and ignored.", embeds="MetricSpec")
    ] = ()
