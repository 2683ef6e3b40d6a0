"""Secrets by their content. A type has one watch, which selects these Secrets only."""

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource


class PullSecret(Resource):
    """A Secret of type `kubernetes.io/dockerconfigjson`. Watched by that field selector.

    `data` holds credentials: reduce it to registry hosts (`Informer(transform=…)`), never log it.
    """

    KIND = Kind("", "v1", "Secret", "secrets")

    data: dict[str, str] = {}


class SshKeys(Resource):
    """The Secret with the SSH keys that the pods of one group share. Watched by its name.

    `data` holds a private key: never log it. `repr` omits it.
    """

    KIND = Kind("", "v1", "Secret", "secrets")

    type: str = ""
    data: dict[str, str] = {}

    def __repr__(self) -> str:
        """The kind and the name, without the keys."""
        return f"{type(self).__name__}({self.key})"


class SshKeysCopy(SshKeys):
    """A copy of those keys in another namespace; a type of its own, because each type has one watch."""


class ServingSecret(Resource):
    """The Secret with the certificate of the webhooks. Watched by its name.

    `data` holds a private key: never log it. `repr` omits it.
    """

    KIND = Kind("", "v1", "Secret", "secrets")

    data: dict[str, str] = {}

    def __repr__(self) -> str:
        """The kind and the name, without the keys."""
        return f"{type(self).__name__}({self.key})"


class MetricsSecret(ServingSecret):
    """The Secret with the certificate of the metrics server; a type of its own for its own watch."""
