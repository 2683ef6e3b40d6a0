"""Makes the SSH keys that TensorRT-LLM needs on several nodes, when a graph first needs them.

The hard part is to make them once: keys that were replaced would cut running groups in two. So the Secret is
only ever created, never changed, and the API server refuses a second one. Whoever wants new keys deletes it.
"""

import asyncio
import base64
from collections.abc import Iterator
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

from dynamo_operator.api.framework import needs_ssh_keys
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import ABSENT
from dynamo_operator.kube.controller import DONE, Outcome, Watches
from dynamo_operator.kube.errors import Conflict
from dynamo_operator.kube.kind import Key
from dynamo_operator.kube.types.core import SshKeys
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.kube.writer import Writer
from dynamo_operator.settings import RenderSettings

_BITS = 3072
_EXPONENT = 65537
_log = structlog.get_logger()


def makes_ssh_source(settings: RenderSettings) -> bool:
    """Whether the operator is to make the Secret, and knows where."""
    named = settings.mpi_secret_name and settings.mpi_secret_namespace
    return bool(named) and settings.mpi_secret_made


@dataclass(frozen=True, slots=True)
class SshSourceController:
    """Creates the Secret that copies are made of, if it is not there and a graph needs it."""

    writer: Writer
    cache: Cache
    settings: RenderSettings

    reconciles: ClassVar[type[Resource]] = SshKeys
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        """What wakes it besides the Secret: graphs that need it."""

        def source(changed: Resource) -> Iterator[Key]:
            if isinstance(changed, DynamoGraphDeployment) and needs_ssh_keys(changed):
                yield self._key

        return (Watches(DynamoGraphDeployment, source),)

    async def reconcile(self, key: Key) -> Outcome:
        """Create the Secret, unless it is there or nobody needs it."""
        if key != self._key or self.cache.get(SshKeys, key) is not None:
            return DONE
        if not any(needs_ssh_keys(each) for each in self.cache.list(DynamoGraphDeployment)):
            return DONE
        wanted = {
            "apiVersion": SshKeys.KIND.api_version,
            "kind": SshKeys.KIND.name,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "type": "Opaque",
            "data": await asyncio.to_thread(new_keys),
        }
        try:
            await self.writer.apply(SshKeys, wanted, force=False, uid=ABSENT)
        except Conflict:
            return DONE  # somebody was sooner, and the watch will tell
        _log.info("ssh keys made")
        return DONE

    @property
    def _key(self) -> Key:
        return Key(self.settings.mpi_secret_namespace, self.settings.mpi_secret_name)


def new_keys() -> dict[str, str]:
    """A new pair as a Secret holds it. Takes a good part of a second."""
    key = rsa.generate_private_key(_EXPONENT, _BITS)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return {
        "private.key": base64.b64encode(private).decode(),
        "private.key.pub": base64.b64encode(public + b"\n").decode(),
    }
