"""discovery.k8s.io/v1: EndpointSlice."""

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct


class TargetReference(Struct):
    """The object behind an endpoint, usually a pod."""

    kind: str = ""
    name: str = ""
    uid: str = ""


class EndpointConditions(Struct):
    """Conditions of an endpoint; None is unknown. By the API's contract an unknown `ready` counts as true."""

    ready: bool | None = None
    terminating: bool | None = None


class SliceEndpoint(Struct):
    """One endpoint of a slice."""

    addresses: tuple[str, ...] = ()
    conditions: EndpointConditions = EndpointConditions()
    target_ref: TargetReference | None = None


class EndpointSlice(Resource):
    """Some of the endpoints of a Service, with the labels of the Service, and one with its name."""

    KIND = Kind("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")

    endpoints: tuple[SliceEndpoint, ...] | None = None
