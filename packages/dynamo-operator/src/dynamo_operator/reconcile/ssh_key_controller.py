"""Create the SSH keys of a namespace when its first graph runs TensorRT-LLM on several nodes.

New keys would separate the pods of running groups. So the Secret is created once and never changed; to get
new keys, delete it. Namespaces never share keys: a tenant who reads their own must not reach pods of
another.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import structlog
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from dynamo_graphs.api import labels
from dynamo_graphs.api.framework import needs_ssh_keys
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.secrets import SshKeysCopy
from dynamo_operator.reconcile.ssh_keys import ssh_key_secret, ssh_keys_target
from kube_runtime.apply.ownership import Shared
from kube_runtime.apply.result import rejected
from kube_runtime.apply.suppression import WriteSuppression
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.client.requests import ABSENT
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import Conflict, Refused, ServerFailure
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Resource

_BITS = 3072
_EXPONENT = 65537
_log = structlog.get_logger()


def creates_ssh_keys(settings: RenderSettings) -> bool:
    """Whether the operator creates keys, rather than copying those of an administrator."""
    return bool(settings.mpi_secret_name) and settings.mpi_secret_made


@dataclass(frozen=True, slots=True)
class SshKeyController:
    """Creates the Secret with the keys of a namespace if a graph needs it.

    `suppression` is that of the graphs, which report a refusal; `wake` reconciles one.
    """

    writer: Writer
    cache: Cache
    settings: RenderSettings
    suppression: WriteSuppression
    wake: Callable[[Key], None]

    reconciles: ClassVar[type[Resource]] = SshKeysCopy
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Graphs that need keys wake the key of their namespace's Secret."""

        def keys(changed: Resource) -> Iterator[Key]:
            if isinstance(changed, DynamoGraphDeployment) and needs_ssh_keys(changed):
                yield Key(changed.metadata.namespace, self.settings.mpi_secret_name)

        return (Watches(DynamoGraphDeployment, keys),)

    async def reconcile(self, key: Key) -> Result:
        """Create the Secret unless it exists or no graph needs it."""
        if self.cache.get(SshKeysCopy, key) is not None:
            return DONE
        users = [
            graph
            for graph in self.cache.list(DynamoGraphDeployment, key.namespace)
            if needs_ssh_keys(graph) and not graph.metadata.deletion_timestamp
        ]
        if not users:
            return DONE
        secret = await _secret(key, users[0])
        try:
            await self.writer.apply(SshKeysCopy, secret, force=False, uid=ABSENT)
        except Conflict:
            return DONE  # another client created it first; the watch delivers it
        except (Refused, ServerFailure) as error:
            blocked = rejected(SshKeysCopy.KIND.name, key.name, error)
            self.suppression.remember(ssh_keys_target(key), blocked)
            for user in users:
                self.wake(user.key)
            raise
        self.suppression.remember(ssh_keys_target(key), None)
        _log.info("ssh keys made", secret=str(key))
        return DONE


async def _secret(key: Key, user: DynamoGraphDeployment) -> Object:
    """The Secret, shared by graphs: each adds its owner reference when it applies it."""
    secret = ssh_key_secret(key, "Opaque", await asyncio.to_thread(new_keys))
    return Shared((), (SshKeysCopy,), labels.SHARED).body(user, secret, None)


def new_keys() -> dict[str, str]:
    """The data of a Secret with a new key pair. Blocks for up to a second."""
    key = rsa.generate_private_key(_EXPONENT, _BITS)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return {
        "private.key": base64.b64encode(private).decode(),
        "private.key.pub": base64.b64encode(public + b"\n").decode(),
    }
