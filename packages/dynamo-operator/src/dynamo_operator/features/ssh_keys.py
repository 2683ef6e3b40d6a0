"""The SSH keys with which TensorRT-LLM runs on several nodes: their source and their owners.

Who has the keys may log in to the pods that trust them. So each namespace has its own keys, created by
`SshKeyController`; only a setting of the administrator copies the keys of one Secret to all namespaces.
The watches select these Secrets by name. A Secret of that name from another client is used unchanged. Ours
is owned by all graphs that use it, and deleted with the last of them.
"""

import asyncio
import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import structlog
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from dynamo_operator import labels
from dynamo_operator.component.framework import needs_ssh_keys
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import SshKeys, SshKeysCopy
from dynamo_operator.shared.transforms import Owners, children
from kube_runtime.apply.applier import Shared, shared_watch
from kube_runtime.apply.result import rejected
from kube_runtime.apply.suppression import Target, WriteSuppression
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import ABSENT
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import Conflict, Refused, ServerFailure
from kube_runtime.types.meta import Key, Kind, Object, Resource, owner_reference


def ssh_key_informers(settings: RenderSettings, owners: Owners) -> list[Informer[Any]]:
    """The informers of the keys and of their source; none if keys are off."""
    if not settings.mpi_secret_name:
        return []
    name = f"metadata.name={settings.mpi_secret_name}"
    namespace = settings.restricted_namespace
    copies = children(SshKeysCopy, owners, namespace=namespace, fields=name, tolerate_forbidden=True)
    if not (source := shared_source(settings)):
        return [copies]
    return [copies, Informer(SshKeys, namespace=source.namespace, fields=name, tolerate_forbidden=True)]


def ssh_key_types(cache: Cache) -> tuple[type[Resource], ...]:
    """The type of the copies, if they are watched."""
    return (SshKeysCopy,) if cache.holds(SshKeysCopy) else ()


def ssh_key_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake graphs when their copy, a foreign Secret of that name, or the source changes."""

    def beside(changed: Resource) -> Iterator[Key]:
        graphs = cache.list(DynamoGraphDeployment, changed.metadata.namespace)
        return (graph.key for graph in graphs if needs_ssh_keys(graph))

    def everywhere(_: Resource) -> Iterator[Key]:
        return (graph.key for graph in cache.list(DynamoGraphDeployment) if needs_ssh_keys(graph))

    watches = (
        shared_watch(SshKeysCopy, DynamoGraphDeployment.KIND),
        Watches(SshKeysCopy, beside),
        Watches(SshKeys, everywhere),
    )
    return tuple(watch for watch in watches if cache.holds(watch.type_))


def shared_source(settings: RenderSettings) -> Key | None:
    """The Secret whose keys all namespaces share; None if each namespace has its own."""
    if settings.mpi_secret_made or not settings.mpi_secret_namespace:
        return None
    return Key(settings.mpi_secret_namespace, settings.mpi_secret_name)


def _copy(cache: Cache, key: Key) -> SshKeysCopy | None:
    return cache.get(SshKeysCopy, key) if cache.holds(SshKeysCopy) else None


def _source(cache: Cache, settings: RenderSettings) -> SshKeys | None:
    key = shared_source(settings)
    return cache.get(SshKeys, key) if key and cache.holds(SshKeys) else None


def missing_ssh_keys(graph: DynamoGraphDeployment, cache: Cache, settings: RenderSettings) -> str:
    """The Secret that a graph which needs keys lacks; "" if it exists."""
    own = Key(graph.metadata.namespace, settings.mpi_secret_name)
    if _copy(cache, own) or _source(cache, settings):
        return ""
    return str(shared_source(settings) or own)


def ssh_key_users(namespace: str, cache: Cache) -> tuple[DynamoGraphDeployment, ...]:
    """The graphs of a namespace that need its keys."""
    graphs = cache.list(DynamoGraphDeployment, namespace)
    return tuple(it for it in graphs if needs_ssh_keys(it) and not it.metadata.deletion_timestamp)


def creates_ssh_keys(settings: RenderSettings) -> bool:
    """Whether the operator creates keys, rather than copying those of an administrator."""
    return bool(settings.mpi_secret_name) and settings.mpi_secret_made


def ssh_key_copies(
    graph: DynamoGraphDeployment, cache: Cache, settings: RenderSettings
) -> tuple[Object, ...]:
    """The Secret to apply in the graph's namespace; none if not needed or provided by another client."""
    key = Key(graph.metadata.namespace, settings.mpi_secret_name)
    if not needs_ssh_keys(graph) or key == shared_source(settings):
        return ()
    copy = _copy(cache, key)
    if copy is not None and not copy.data:
        return ()  # not ours: the cache keeps only its metadata
    keys = _source(cache, settings) or copy
    return () if keys is None else (ssh_key_secret(key, keys.type, keys.data),)


def ssh_key_secret(key: Key, type_: str, data: Mapping[str, str]) -> Object:
    """The Secret with the keys of a namespace, as applied."""
    return SshKeysCopy.KIND.manifest({"name": key.name, "namespace": key.namespace}, type=type_, data=data)


# New keys would separate the pods of running groups. So the Secret is created once and never changed;
# to get new keys, delete it.
def decide(
    key: Key, present: SshKeysCopy | None, users: Sequence[DynamoGraphDeployment], kind: Kind
) -> Object | None:
    """Decide on the Secret to create, without its keys; None if it exists or no graph needs it.

    `kind` is that of graphs, in its stored version.
    """
    if present is not None or not users:
        return None
    # Shared by graphs: each adds its owner reference when it applies it.
    secret = ssh_key_secret(key, "Opaque", {})
    reference = owner_reference(kind, users[0].metadata.name, users[0].metadata.uid)
    return Shared((), (SshKeysCopy,), labels.SHARED).body(reference, secret, None)


def ssh_keys_target(key: Key) -> Target:
    """The Secret, as the target of a write that is remembered if it is refused."""
    return Target("", SshKeysCopy.KIND.name, key)


_BITS = 3072
_EXPONENT = 65537
_log = structlog.get_logger(__name__)


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
        users = ssh_key_users(key.namespace, self.cache)
        kind = self.writer.client.stored(DynamoGraphDeployment.KIND)
        if (secret := decide(key, self.cache.get(SshKeysCopy, key), users, kind)) is None:
            return DONE
        secret["data"] = await asyncio.to_thread(new_keys)
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


def new_keys() -> dict[str, str]:
    """The data of a Secret with a new key pair. Blocks for up to a second."""
    key = rsa.generate_private_key(_EXPONENT, _BITS)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
    public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return {
        "private.key": base64.b64encode(private).decode(),
        "private.key.pub": base64.b64encode(public + b"\n").decode(),
    }
