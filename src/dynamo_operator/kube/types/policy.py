"""policy/v1: PodDisruptionBudget."""

import msgspec

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Resource


class PodDisruptionBudget(Resource):
    """A PodDisruptionBudget; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
