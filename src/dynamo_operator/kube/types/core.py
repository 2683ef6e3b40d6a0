"""v1: ServiceAccount, Service, Secret and Event."""

import msgspec

from dynamo_operator.kube.kind import Kind
from dynamo_operator.kube.types.meta import Resource


class ServiceAccount(Resource):
    """A ServiceAccount; we write none of its fields but the metadata."""

    KIND = Kind("", "v1", "ServiceAccount", "serviceaccounts")


class Service(Resource):
    """A Service; its spec stays JSON text, because apply compares it as a whole."""

    KIND = Kind("", "v1", "Service", "services")

    spec: msgspec.Raw = msgspec.Raw(b"{}")


class PullSecret(Resource):
    """A Secret of type `kubernetes.io/dockerconfigjson`. Watched with that field selector only.

    `data` holds credentials: reduce it to registry hosts at once (`kube.cache` calls `keep`), never log it.
    """

    KIND = Kind("", "v1", "Secret", "secrets")

    data: dict[str, str] = {}


class Event(Resource):
    """A Kubernetes Event; written, never read."""

    KIND = Kind("", "v1", "Event", "events")

    count: int = 1
