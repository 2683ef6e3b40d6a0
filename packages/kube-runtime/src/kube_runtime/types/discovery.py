"""discovery.k8s.io/v1: EndpointSlice, as far as it lists the pods behind a Service."""

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct


class TargetReference(Struct):
    """What an endpoint stands for; a pod, nearly always."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class EndpointConditions(Struct):
    """None means: unknown. Kubernetes says to read an unknown `ready` as true."""

    ready: bool | None = None
    terminating: bool | None = None


class SliceEndpoint(Struct):
    """One pod of a slice."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    target_ref: TargetReference | None = None


class EndpointSlice(Resource):
    """Some of the endpoints of a Service. It has the labels of the Service, and one with its name."""

    KIND = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")

    endpoints: tuple[SliceEndpoint, ...] | None = None
