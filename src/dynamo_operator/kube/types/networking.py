"""networking.k8s.io/v1: Ingress."""

import msgspec

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Resource


class Ingress(Resource):
    """An Ingress; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind("networking.k8s.io", "v1", "Ingress", "ingresses")

    spec: msgspec.Raw = msgspec.Raw(b"{}")
