"""What rendering needs from the rest of the cluster, read from the cache only.

Pull secrets contain credentials, so they are reduced to the names of their registries before they are
stored, and one that cannot be read must not hide the others.
"""

import base64
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.facts import Facts, registry_of_credential
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_graphs.types.optional_apis import (
    GROVE,
    INFERENCE_POOL,
    ISTIO,
    KAI,
    LEADER_WORKER_SET,
    InferencePool,
    LeaderWorkerSet,
    OptionalApi,
    PodGroup,
    Queue,
    VirtualService,
)
from dynamo_graphs.types.selected import PodServiceAccount
from dynamo_operator.reconcile.grove import live_templates
from dynamo_operator.reconcile.ssh_keys import missing_ssh_keys
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key, Kind
from kube_runtime.types.core import PersistentVolumeClaim, PullSecret, ServiceAccount
from kube_runtime.types.meta import Resource

_TYPES: Mapping[OptionalApi, tuple[type[Resource], ...]] = {
    GROVE: (PodCliqueSet, PodClique, PodCliqueScalingGroup),
    KAI: (Queue,),
    LEADER_WORKER_SET: (LeaderWorkerSet, PodGroup),
    INFERENCE_POOL: (InferencePool,),
    ISTIO: (VirtualService,),
}

_BESIDE: tuple[type[Resource], ...] = (PullSecret, PodServiceAccount)
"""What components are rendered with; a change wakes them."""

LiveObjects: TypeAlias = Mapping[tuple[str, Key], Resource]
"""Objects as the API server has them, by the names of their kinds and their keys."""


def live_objects(owner: Resource, cache: Cache, types: Iterable[type[Resource]]) -> LiveObjects:
    """What an object owns of these kinds, now."""
    owned = cache.owned_by(owner.metadata.uid, types, owner.metadata.namespace)
    return {(live.KIND.name, live.key): live for live in owned}


def read_facts(namespace: str, cache: Cache) -> Facts:
    """The facts for the components of one namespace."""

    def beside() -> Facts:
        secrets = cache.list(PullSecret, namespace)
        return beside_components(secrets, cache.list(PodServiceAccount, namespace))

    return replace(
        cache.derived(("beside components", namespace), _BESIDE, beside),
        istio_served=serves(cache, ISTIO),
        lws_served=serves(cache, LEADER_WORKER_SET),
        withheld=withheld(cache),
    )


def withheld(cache: Cache) -> dict[OptionalApi, tuple[Kind, ...]]:
    """The optional APIs that are installed and may not be used, each with its kinds that are forbidden."""
    return {
        api: tuple(type_.KIND for type_ in types if _is_withheld(cache, type_))
        for api, types in _TYPES.items()
        if any(_is_withheld(cache, type_) for type_ in types)
        and all(cache.serves(type_) or cache.forbids(type_) for type_ in types)
    }


def serves(cache: Cache, api: OptionalApi) -> bool:
    """Whether all kinds of an optional API can be used."""
    return all(cache.serves(type_) for type_ in _TYPES[api])


def _is_withheld(cache: Cache, type_: type[Resource]) -> bool:
    return cache.forbids(type_) and not cache.serves(type_)


def beside_components(
    pull_secrets: Iterable[PullSecret], accounts: Iterable[ServiceAccount]
) -> Facts:
    """The facts that come from objects of one namespace; of Secrets only the registries are known."""
    secrets = defaultdict(list)
    for secret in pull_secrets:
        for host in secret.data:
            secrets[host].append(secret.metadata.name)
    marked = (
        account.metadata.name
        for account in accounts
        if account.metadata.labels.get(labels.COMPONENT_POD) == "true"
    )
    return Facts(
        pull_secrets={host: tuple(sorted(names)) for host, names in secrets.items()},
        component_service_account=min(marked, default=""),
    )


def read_facts_for_graph(
    graph: DynamoGraphDeployment, cache: Cache, settings: RenderSettings
) -> Facts:
    """The facts for a graph: those of its namespace, and what it may use beside its components."""
    namespace = graph.metadata.namespace
    return replace(
        read_facts(namespace, cache),
        grove_served=serves(cache, GROVE),
        kai_served=serves(cache, KAI),
        inference_pools_served=serves(cache, INFERENCE_POOL),
        kai_queues=frozenset(queue.metadata.name for queue in cache.list(Queue)),
        claims=frozenset(
            claim.metadata.name for claim in cache.list(PersistentVolumeClaim, namespace)
        ),
        live_templates=live_templates(graph, cache),
        missing_ssh_keys=missing_ssh_keys(graph, cache, settings),
    )


class _DockerConfig(msgspec.Struct):
    auths: dict[str, msgspec.Raw] = {}


def registries_only(secret: PullSecret) -> PullSecret:
    """The secret with the hosts of its registries in place of its data; none if it is malformed.

    Its annotations go as well: `kubectl apply` leaves a copy of the whole secret in one of them.
    """
    try:
        text = base64.b64decode(secret.data.get(".dockerconfigjson", ""), validate=True)
        auths = msgspec.json.decode(text or b"{}", type=_DockerConfig).auths
    except (ValueError, msgspec.DecodeError, RecursionError):
        auths = {}  # useless to the kubelet as well, which reports it on the pod
    hosts = {registry_of_credential(server): "" for server in auths}
    metadata = msgspec.structs.replace(secret.metadata, annotations={})
    return msgspec.structs.replace(secret, metadata=metadata, data=hosts)


def fact_watches(cache: Cache) -> tuple[Watches, ...]:
    """What wakes components when a fact changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        components = cache.list(DynamoComponentDeployment, changed.metadata.namespace)
        return (component.key for component in components)

    return tuple(Watches(type_, keys) for type_ in _BESIDE)


def pvc_watch(cache: Cache) -> Watches:
    """What wakes the graphs that name a PVC when it is created or deleted."""

    def keys(changed: Resource) -> Iterator[Key]:
        for graph in cache.list(DynamoGraphDeployment, changed.metadata.namespace):
            if any(changed.metadata.name == claim.name for claim in graph.spec.pvcs):
                yield graph.key

    return Watches(PersistentVolumeClaim, keys)


def orchestrator_watches() -> tuple[Watches, ...]:
    """What wakes all graphs when groups can be formed, or not any more; no single group does."""
    return tuple(Watches(type_, lambda _: ()) for type_ in (LeaderWorkerSet, PodGroup))
