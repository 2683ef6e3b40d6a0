"""networking.k8s.io/v1: Ingress."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class Ingress(Resource):
    """An Ingress; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("networking.k8s.io", "v1", "Ingress", "ingresses")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
