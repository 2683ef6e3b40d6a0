"""The SSH keys with which TensorRT-LLM runs on several nodes: their source and their owners.

Who has the keys may log in to the pods that trust them. So each namespace has its own keys, created by
`ssh_key_controller`; only a setting of the administrator copies the keys of one Secret to all namespaces.
The watches select these Secrets by name. A Secret of that name from another client is used unchanged. Ours
is owned by all graphs that use it, and deleted with the last of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dynamo_graphs.api.framework import needs_ssh_keys
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.secrets import SshKeys, SshKeysCopy
from dynamo_operator.reconcile.owned_content import Owners, children
from kube_runtime.apply.ownership import shared_watch
from kube_runtime.apply.suppression import Target
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Resource


def ssh_key_informers(settings: RenderSettings, owners: Owners) -> list[Informer[Any]]:
    """The informers of the keys and of their source; none if keys are off."""
    if not settings.mpi_secret_name:
        return []
    name = f"metadata.name={settings.mpi_secret_name}"
    copies = children(
        SshKeysCopy,
        owners,
        namespace=settings.restricted_namespace,
        fields=name,
        tolerate_forbidden=True,
    )
    if not (source := shared_source(settings)):
        return [copies]
    keys = Informer(SshKeys, namespace=source.namespace, fields=name, tolerate_forbidden=True)
    return [copies, keys]


def shared_source(settings: RenderSettings) -> Key | None:
    """The Secret whose keys all namespaces share; None if each namespace has its own."""
    if settings.mpi_secret_made or not settings.mpi_secret_namespace:
        return None
    return Key(settings.mpi_secret_namespace, settings.mpi_secret_name)


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
    if keys is None:
        return ()
    return (ssh_key_secret(key, keys.type, keys.data),)


def ssh_key_secret(key: Key, type_: str, data: Mapping[str, str]) -> Object:
    """The Secret with the keys of a namespace, as applied."""
    return {
        "apiVersion": SshKeysCopy.KIND.api_version,
        "kind": SshKeysCopy.KIND.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "type": type_,
        "data": data,
    }


def ssh_keys_target(key: Key) -> Target:
    """The Secret, as the target of a write that is remembered if it is refused."""
    return Target("", SshKeysCopy.KIND.name, key)


def missing_ssh_keys(graph: DynamoGraphDeployment, cache: Cache, settings: RenderSettings) -> str:
    """The Secret that the graph needs and that does not exist; "" if none is missing."""
    own = Key(graph.metadata.namespace, settings.mpi_secret_name)
    if not settings.mpi_secret_name or not needs_ssh_keys(graph):
        return ""
    if _copy(cache, own) or _source(cache, settings):
        return ""
    return str(shared_source(settings) or own)


def _copy(cache: Cache, key: Key) -> SshKeysCopy | None:
    return cache.get(SshKeysCopy, key) if cache.holds(SshKeysCopy) else None


def _source(cache: Cache, settings: RenderSettings) -> SshKeys | None:
    key = shared_source(settings)
    return cache.get(SshKeys, key) if key and cache.holds(SshKeys) else None
