"""Read what a component depends on, from the cache only; and the index of its pods."""

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.diagnosis import (
    READ_CONDITIONS,
    READY,
    TEMPLATE_HASHES,
    is_over,
    is_ready,
    restarts,
)
from dynamo_operator.component.objects import group_names
from dynamo_operator.component.plan import ComponentInputs
from dynamo_operator.component.status import deployment_readiness
from dynamo_operator.shared.cluster import (
    CLIQUE_NAME,
    ISTIO,
    LEADER_WORKER_SET,
    OPTIONAL_APIS,
    REPLICA_INDEX,
    SET_NAME,
    Facts,
    LeaderWorkerSet,
    LiveObjects,
    OptionalApi,
    PodServiceAccount,
    PullSecret,
)
from dynamo_operator.shared.transforms import SHORT, SLIM_BYTES
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache, Change
from kube_runtime.types.kinds import (
    ContainerStatus,
    Deployment,
    Pod,
    PodSpec,
    PodStatus,
    ServiceAccount,
    StatefulSet,
)
from kube_runtime.types.meta import Condition, Key, Kind, Metadata, Resource
from kube_runtime.wire import bytes_in_memory

SELECTOR = labels.COMPONENT
"""Label selector of the watched pods: those of components."""


_READ_LABELS = (labels.COMPONENT, labels.GRAPH, labels.SELECTOR, SET_NAME, REPLICA_INDEX, *TEMPLATE_HASHES)
_READ_BY_MODELS = (
    labels.BASE_MODEL_HASH,
    labels.COMPONENT_TYPE,
    labels.SUB_COMPONENT_TYPE,
    labels.ROLE,
    CLIQUE_NAME,
)


def reduced_pod(pod: Pod) -> Pod:
    """Keep the fields of a pod that the operator reads; strings that many pods share are interned."""
    old = pod.metadata
    read = (*_READ_LABELS, *(_READ_BY_MODELS if labels.BASE_MODEL_HASH in old.labels else ()))
    metadata = Metadata(
        name=old.name,
        namespace=sys.intern(old.namespace),
        uid=old.uid,
        resource_version=old.resource_version,
        deletion_timestamp=old.deletion_timestamp,
        labels={name: sys.intern(old.labels[name]) for name in read if name in old.labels},
    )
    return Pod(metadata, PodSpec(sys.intern(pod.spec.node_name[:SHORT])), _reduced_status(pod))


_IS_READY = PodStatus(conditions=(Condition(READY, "True"),))


def _reduced_status(pod: Pod) -> PodStatus:
    if is_over(pod):
        return PodStatus(phase=sys.intern(pod.status.phase))
    # Models read the addresses, and of a ready pod the restarts.
    serves_model = labels.BASE_MODEL_HASH in pod.metadata.labels
    addresses = pod.status.pod_ips if serves_model else ()
    if not is_ready(pod):
        conditions = (condition for condition in pod.status.conditions if condition.type in READ_CONDITIONS)
        kept = replace(pod.status, phase="", conditions=tuple(conditions), pod_ips=addresses)
        return kept if bytes_in_memory(kept) <= SLIM_BYTES else PodStatus()
    if not serves_model:
        return _IS_READY
    counted = (ContainerStatus(restart_count=count),) if (count := restarts(pod)) else ()
    return replace(_IS_READY, pod_ips=addresses, container_statuses=counted)


# A cluster has ten thousand pods, and a reconcile must not scan them to find its ten. So an index
# finds them by the labels that name their workload and their service.
class PodIndex:
    """Indexes the cached pods by workload, and by service of a graph."""

    def __init__(self, cache: Cache) -> None:
        self._by_workload: dict[Key, dict[str, Pod]] = defaultdict(dict)
        self._by_service: dict[tuple[Key, str], dict[str, Pod]] = defaultdict(dict)
        cache.subscribe(Pod, self._on_change)

    def of_workload(self, namespace: str, workload: str) -> tuple[Pod, ...]:
        """The pods of a Deployment or a LeaderWorkerSet."""
        return tuple(self._by_workload.get(Key(namespace, workload), {}).values())

    def of_service(self, namespace: str, graph: str, service: str) -> tuple[Pod, ...]:
        """The pods of a graph's service, whatever workload runs them."""
        key = (Key(namespace, names.label_value(graph)), names.label_value(service))
        return tuple(self._by_service.get(key, {}).values())

    def _on_change(self, change: Change[Pod]) -> None:
        if (old := change.old) is not None:
            workload, service = _workload(old), service_of(old)
            del self._by_workload[workload][old.metadata.name]
            del self._by_service[service][old.metadata.name]
            if not self._by_workload[workload]:
                del self._by_workload[workload]
            if not self._by_service[service]:
                del self._by_service[service]
        if (new := change.new) is not None:
            self._by_workload[_workload(new)][new.metadata.name] = new
            self._by_service[service_of(new)][new.metadata.name] = new


def component_pod_watch(
    cache: Cache, kind: Kind = DynamoComponentDeployment.KIND, of: type[Resource] = Pod
) -> Watches:
    """Wake a component, of that kind, when one of its pods changes, or the StatefulSet `of` its leaders."""

    def keys(pod: Resource) -> Iterator[Key]:
        workload = _workload(pod)
        is_group = SET_NAME in pod.metadata.labels
        live = cache.get(LeaderWorkerSet if is_group else Deployment, workload)
        owner = live.metadata.controller if live else None
        if owner is not None and owner.kind == kind.name:
            yield Key(workload.namespace, owner.name)

    return Watches(of, keys)


def _workload(pod: Resource) -> Key:
    pod_labels = pod.metadata.labels
    return Key(pod.metadata.namespace, pod_labels.get(SET_NAME) or pod_labels.get(labels.SELECTOR, ""))


def service_of(pod: Pod) -> tuple[Key, str]:
    """The graph and the service of a pod, as its labels name them; "" if they do not."""
    pod_labels = pod.metadata.labels
    graph = Key(pod.metadata.namespace, pod_labels.get(labels.GRAPH, ""))
    return graph, pod_labels.get(labels.COMPONENT, "")


_BESIDE: tuple[type[Resource], ...] = (PullSecret, PodServiceAccount)
"""The types beside its children that a component is rendered from; a change wakes it."""


def live_objects(owner: Resource, cache: Cache, types: Iterable[type[Resource]]) -> LiveObjects:
    """The cached objects of these kinds that `owner` owns."""
    owned = cache.owned_by(owner.metadata.uid, types, owner.metadata.namespace)
    return {(live.KIND.name, live.key): live for live in owned}


def read_facts(namespace: str, cache: Cache) -> Facts:
    """The facts for the components of one namespace."""
    istio, lws, forbidden = serves(cache, ISTIO), serves(cache, LEADER_WORKER_SET), withheld(cache)
    return cache.derived(
        ("beside components", namespace, istio, lws, *forbidden.items()),
        _BESIDE,
        lambda: replace(
            namespace_facts(cache.list(PullSecret, namespace), cache.list(PodServiceAccount, namespace)),
            istio_served=istio,
            lws_served=lws,
            withheld=forbidden,
        ),
    )


def withheld(cache: Cache) -> dict[OptionalApi, tuple[Kind, ...]]:
    """The optional APIs that are installed but forbidden, each with its forbidden kinds."""
    forbidden: dict[OptionalApi, tuple[Kind, ...]] = {}
    for api in OPTIONAL_APIS:
        if any(map(cache.forbids, api.types)):
            missing = tuple(type_ for type_ in api.types if not cache.serves(type_))
            if missing and all(map(cache.forbids, missing)):
                forbidden[api] = tuple(type_.KIND for type_ in missing)
    return forbidden


def serves(cache: Cache, api: OptionalApi) -> bool:
    """Whether all kinds of an optional API are installed and allowed."""
    return all(map(cache.serves, api.types))


def namespace_facts(pull_secrets: Iterable[PullSecret], accounts: Iterable[ServiceAccount]) -> Facts:
    """The facts from pull secrets, reduced to their registries, and ServiceAccounts of one namespace."""
    secrets = defaultdict(list)
    for secret in pull_secrets:
        for host in secret.data:
            secrets[host].append(secret.metadata.name)
    marked = frozenset(
        account.metadata.name
        for account in accounts
        if account.metadata.labels.get(labels.COMPONENT_POD) == "true"
    )
    return Facts(
        pull_secrets={host: tuple(sorted(names)) for host, names in secrets.items()},
        component_service_account=min(marked, default=""),
        component_service_accounts=marked,
    )


def fact_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake the components of a namespace when a fact changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        components = cache.list(DynamoComponentDeployment, changed.metadata.namespace)
        return (component.key for component in components)

    return tuple(Watches(type_, keys) for type_ in _BESIDE)


def read_component(
    component: DynamoComponentDeployment, cache: Cache, pods: PodIndex, owns: Iterable[type[Resource]]
) -> ComponentInputs:
    """Read the inputs of a component, which controls the kinds `owns`."""
    namespace, name = component.key
    facts = read_facts(namespace, cache)
    live = live_objects(component, cache, owns)
    if component.spec.nodes == 1:
        of_component = pods.of_workload(namespace, names.workload_name(name))
        return ComponentInputs(facts, live, pods=of_component)
    groups = group_names(component)
    leaders = {group: cache.get(StatefulSet, Key(namespace, group)) for group in groups}
    return ComponentInputs(
        facts,
        live,
        {group: leader for group, leader in leaders.items() if leader is not None},
        tuple(pod for group in groups for pod in pods.of_workload(namespace, group)),
    )


def hastens_component(change: Change[Resource]) -> bool:
    """Whether a change may make a component ready, or takes more than a new status."""
    old, new = change.old, change.new
    if isinstance(new, Pod):
        return False  # its workload counts it
    if not isinstance(old, Deployment) or not isinstance(new, Deployment) or is_edited(old, new):
        return True
    return deployment_readiness(new).is_ready


def is_edited(old: Resource, new: Resource) -> bool:
    """Whether more of an object may have changed than its status."""
    before, after = old.metadata, new.metadata
    return (before.uid, before.generation, before.deletion_timestamp, before.labels) != (
        *(after.uid, after.generation, after.deletion_timestamp, after.labels),
    )
