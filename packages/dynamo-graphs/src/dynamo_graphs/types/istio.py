"""networking.istio.io/v1beta1: VirtualService."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class VirtualService(Resource):
    """A VirtualService; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind("networking.istio.io", "v1beta1", "VirtualService", "virtualservices")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
