"""inference.networking.k8s.io/v1: InferencePool of the Gateway API inference extension."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class InferencePool(Resource):
    """An InferencePool; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind("inference.networking.k8s.io", "v1", "InferencePool", "inferencepools")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
