"""The SSH keys with which TensorRT-LLM runs on several nodes: their source and their owners.

A user who has the keys may log in to the pods that trust them. So each namespace has separate keys, created
by `ssh_secret`; only a setting of the administrator copies the keys of one Secret to all namespaces.
Watches by name select these Secrets and no others; without a use there is no watch. A Secret of that name
from another client is used as it is. Ours belongs to all graphs that use it and is deleted with the last of
them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from dynamo_graphs.api.framework import needs_ssh_keys
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.secrets import SshKeys, SshKeysCopy
from dynamo_operator.reconcile.transforms import strip_unowned
from kube_runtime.apply.ownership import shared_watch
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Resource


def ssh_key_informers(settings: RenderSettings) -> list[Informer[Any]]:
    """The watches of the keys and of what they are copied from; none if keys are off."""
    if not settings.mpi_secret_name:
        return []
    name = f"metadata.name={settings.mpi_secret_name}"
    copies = Informer(
        SshKeysCopy,
        namespace=settings.restricted_namespace,
        fields=name,
        transform=strip_unowned,
        tolerate_forbidden=True,
    )
    if not (source := shared_source(settings)):
        return [copies]
    keys = Informer(SshKeys, namespace=source.namespace, fields=name, tolerate_forbidden=True)
    return [copies, keys]


def shared_source(settings: RenderSettings) -> Key | None:
    """The Secret whose keys all namespaces share. None means: each namespace has its own."""
    if settings.mpi_secret_made or not settings.mpi_secret_namespace:
        return None
    return Key(settings.mpi_secret_namespace, settings.mpi_secret_name)


def ssh_key_types(cache: Cache) -> tuple[type[Resource], ...]:
    """The type of the copies, if they are watched."""
    return (SshKeysCopy,) if cache.holds(SshKeysCopy) else ()


def ssh_key_watches(cache: Cache) -> tuple[Watches, ...]:
    """What wakes graphs: their copy, a Secret that comes in its place, and the source."""

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
    """The keys in the graph's namespace; none where they are not needed or another client provides them."""
    key = Key(graph.metadata.namespace, settings.mpi_secret_name)
    if not needs_ssh_keys(graph) or key == shared_source(settings):
        return ()
    copy = _copy(cache, key)
    if copy is not None and not copy.data:
        return ()  # not ours: nothing but its metadata is remembered
    keys = _source(cache, settings) or copy
    if keys is None:
        return ()
    return (ssh_key_secret(key, keys.type, keys.data),)


def ssh_key_secret(key: Key, type_: str, data: Mapping[str, str]) -> Object:
    """The Secret with the keys of a namespace, as it is applied."""
    return {
        "apiVersion": SshKeysCopy.KIND.api_version,
        "kind": SshKeysCopy.KIND.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "type": type_,
        "data": data,
    }


def missing_ssh_keys(graph: DynamoGraphDeployment, cache: Cache, settings: RenderSettings) -> str:
    """Where the keys of the graph should come from, if they are not there; "" if all is well."""
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
