"""autoscaling/v2: HorizontalPodAutoscaler."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class HorizontalPodAutoscaler(Resource):
    """A HorizontalPodAutoscaler; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
