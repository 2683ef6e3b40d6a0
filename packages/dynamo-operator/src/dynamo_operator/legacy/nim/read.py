"""Read everything that one reconcile of a DynamoNimDeployment depends on, once, from the cache."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import msgspec

from dynamo_graphs.api import names
from dynamo_graphs.facts import Facts
from dynamo_graphs.types.selected import PodServiceAccount
from dynamo_legacy.api.nim import DynamoNim
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.translate import claim_name
from dynamo_legacy.types import ServicePodAccount
from dynamo_operator.reconcile.pods import PodIndex, component_pod_watch
from dynamo_operator.reconcile.read import LiveObjects, live_objects, read_facts
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key
from kube_runtime.types.apps import Deployment, DeploymentSpec
from kube_runtime.types.core import PersistentVolumeClaim, Pod
from kube_runtime.types.meta import Resource


@dataclass(frozen=True, slots=True)
class NimInputs:
    """The inputs of one reconcile.

    `image` and `request` are the DynamoNim and the DynamoNimRequest that the component names. `live` are
    the objects that it owns, `live_replicas` the replicas of its Deployment. `has_claim`: its PVC exists.
    `pods` are those of its Deployment.
    """

    facts: Facts
    image: DynamoNim | None
    request: DynamoNimRequest | None
    live: LiveObjects = field(default_factory=dict)
    live_replicas: int | None = None
    has_claim: bool = False
    pods: tuple[Pod, ...] = ()


def read_nim(
    nim: DynamoNimDeployment, cache: Cache, pods: PodIndex, owns: Iterable[type[Resource]]
) -> NimInputs:
    """Read the inputs of a component, which controls the kinds `owns`."""
    namespace, name = nim.key
    named = Key(namespace, nim.spec.dynamo_nim)
    workload = names.workload_name(name)
    live = live_objects(nim, cache, owns)
    deployment = live.get((Deployment.KIND.name, Key(namespace, workload)))
    return NimInputs(
        facts=_facts(namespace, cache),
        image=cache.get(DynamoNim, named),
        request=cache.get(DynamoNimRequest, named),
        live=live,
        live_replicas=_replicas(deployment) if isinstance(deployment, Deployment) else None,
        has_claim=cache.get(PersistentVolumeClaim, Key(namespace, claim_name(nim))) is not None,
        pods=pods.of_workload(namespace, workload),
    )


def nim_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake components when their image, build, PVC or pods, or labelled ServiceAccounts, change."""

    def of_image(changed: Resource) -> Iterator[Key]:
        for nim in cache.list(DynamoNimDeployment, changed.metadata.namespace):
            if nim.spec.dynamo_nim == changed.metadata.name:
                yield nim.key

    def of_claim(changed: Resource) -> Iterator[Key]:
        for nim in cache.list(DynamoNimDeployment, changed.metadata.namespace):
            if nim.spec.pvc is not None and claim_name(nim) == changed.metadata.name:
                yield nim.key

    def of_namespace(changed: Resource) -> Iterator[Key]:
        yield from (nim.key for nim in cache.list(DynamoNimDeployment, changed.metadata.namespace))

    return (
        Watches(DynamoNim, of_image),
        Watches(DynamoNimRequest, of_image),
        Watches(PersistentVolumeClaim, of_claim),
        Watches(PodServiceAccount, of_namespace),
        Watches(ServicePodAccount, of_namespace),
        component_pod_watch(cache, DynamoNimDeployment.KIND),
    )


def _facts(namespace: str, cache: Cache) -> Facts:
    """The facts of the namespace, with the ServiceAccount that has the label of that generation."""
    facts = read_facts(namespace, cache)
    marked = (account.metadata.name for account in cache.list(ServicePodAccount, namespace))
    account = min(marked, default=facts.component_service_account)
    return replace(facts, component_service_account=account)


def _replicas(deployment: Deployment) -> int:
    return msgspec.json.decode(deployment.spec, type=DeploymentSpec).replicas
