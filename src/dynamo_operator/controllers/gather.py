"""What rendering must know of the rest of the cluster, read from the cache only."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from dynamo_operator.api import labels
from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.facts import Facts
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.controller import Watches
from dynamo_operator.kube.kind import Key
from dynamo_operator.kube.types.core import PullSecret, ServiceAccount
from dynamo_operator.kube.types.meta import Resource


def gather(namespace: str, cache: Cache) -> Facts:
    """The facts for the components of one namespace."""
    secrets = defaultdict(list)
    for secret in cache.list(PullSecret, namespace):
        for host in secret.data:
            secrets[host].append(secret.metadata.name)
    accounts = (
        each.metadata.name
        for each in cache.list(ServiceAccount, namespace)
        if each.metadata.labels.get(labels.COMPONENT_POD) == "true"
    )
    return Facts(
        pull_secrets={host: tuple(sorted(names)) for host, names in secrets.items()},
        component_service_account=min(accounts, default=""),
    )


def fact_watches(cache: Cache) -> tuple[Watches, ...]:
    """What wakes components when a fact changes; the same kinds that `gather` reads."""
    return tuple(
        Watches(type_, _components_beside(cache)) for type_ in (PullSecret, ServiceAccount)
    )


def _components_beside(cache: Cache) -> Callable[[Resource], Iterator[Key]]:
    def keys(changed: Resource) -> Iterator[Key]:
        marked = changed.metadata.labels.get(labels.COMPONENT_POD) == "true"
        if isinstance(changed, PullSecret) or marked:
            components = cache.list(DynamoComponentDeployment, changed.metadata.namespace)
            yield from (each.key for each in components)

    return keys
