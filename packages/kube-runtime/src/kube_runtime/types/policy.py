"""policy/v1: PodDisruptionBudget."""

import msgspec

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class PodDisruptionBudget(Resource):
    """A PodDisruptionBudget; its spec stays JSON text for the comparison with the desired state."""

    KIND = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
