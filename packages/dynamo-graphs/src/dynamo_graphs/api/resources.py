"""Requests and limits in the short form that components use."""

from typing import Annotated

from kube_runtime.crd.declare import Field
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
