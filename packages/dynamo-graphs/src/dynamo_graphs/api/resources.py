"""Requests and limits in the short form that components use."""

from typing import Annotated

from kube_runtime.crd.declare import Field
from kube_runtime.kind import Object
from kube_runtime.types.meta import Struct


class ResourceItem(Struct):
    """Requests or limits of a component."""

    cpu: Annotated[str | None, Field("Processors, such as `2` or `500m`.")] = None
    memory: Annotated[str | None, Field("Memory, such as `16Gi`.")] = None
    gpu: Annotated[
        str | None,
        Field("Number of GPUs on each node; a component of several nodes gets this many on each."),
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
    """Requests, limits and claims of a component."""

    requests: Annotated[
        ResourceItem | None, Field("What the scheduler sets aside for each pod.")
    ] = None
    limits: Annotated[ResourceItem | None, Field("What each pod may use at most.")] = None
    claims: Annotated[
        tuple[Object, ...],
        Field("Resource claims of the pod that the main container uses.", embeds="ResourceClaim"),
    ] = ()
