"""What the operator watches: its namespaces, the marker Lease, and an informer for each type."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, cast

from dynamo_operator import labels, older_generation, version
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.read import SELECTOR as POD_SELECTOR
from dynamo_operator.component.read import reduced_pod
from dynamo_operator.component.validate import MAX_GROUPS_BYTES, most_bytes
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.features.ssh_keys import ssh_key_informers
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.read import SLICE_SELECTOR
from dynamo_operator.names import MARKER_LEASE
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.requests.read import request_informers
from dynamo_operator.settings import RenderSettings, Settings
from dynamo_operator.shared import cluster, transforms
from dynamo_operator.shared.transforms import (
    NAMESPACE_BYTES,
    BoundedContent,
    Owners,
    bounded,
    children,
    slimmed,
)
from kube_runtime.apply.writer import complement
from kube_runtime.cache.informer import CrdInformer, Informer, OptionalInformer
from kube_runtime.cache.store import BoundedStatuses
from kube_runtime.client.client import Client
from kube_runtime.controller.manager import Manager
from kube_runtime.leases import Exclusions, MarkerTerms, NamespaceLease
from kube_runtime.types import kinds
from kube_runtime.types.kinds import Lease, Pod
from kube_runtime.types.meta import Key, R, Resource, Selector

Informers: TypeAlias = list[Informer[Any]]

LEASE = MARKER_LEASE
"""The name of the marker Lease."""

_REPLICAS = "replica.dynamo.nvidia.com"


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces that this operator manages.

    `leases` has the marker of a restricted operator, without which it may not write; a cluster-wide one has
    `exclusions`, filled by `informers`.
    """

    leases: tuple[NamespaceLease, ...] = ()
    exclusions: Exclusions | None = None
    informers: tuple[Informer[Lease], ...] = ()

    @property
    def excluded(self) -> Mapping[str, object]:
        """The namespaces that other operators manage now: nothing is written or validated there."""
        return self.exclusions.namespaces if self.exclusions is not None else {}

    async def claim(self) -> None:
        """Acquire the lease of a restricted operator's namespace, before anything else is written there.

        Raises:
            OperatorError: that failed.
        """
        for lease in self.leases:
            await lease.claim()

    async def release(self) -> None:
        """Release the lease, after an orderly stop only."""
        for lease in self.leases:
            await lease.release()

    def join(self, manager: Manager) -> None:
        """Have the manager renew the lease, or watch those of others, on every replica."""
        for informer in self.informers:
            manager.inform(informer)
        for lease in self.leases:
            manager.serve(lease)
            lease.on_regained = manager.wake_namespace
        if self.exclusions is not None:
            manager.serve(self.exclusions)
            self.exclusions.on_end = manager.wake_namespace


# Names and texts are those of the Go operator, so both operators respect each other.
# `docs/tenancy.md` describes what a forged Lease can do.
def scope_of(client: Client, settings: Settings) -> Scope:
    """The scope that the settings describe; nothing is written yet."""
    namespace = settings.render.restricted_namespace
    if not namespace:
        # Only leases of restricted operators are sent, not the many of nodes and controllers.
        informer = Informer(Lease, fields=f"metadata.name={LEASE}", transform=slimmed)
        return Scope(exclusions=Exclusions(client, informer.store), informers=(informer,))
    seconds = settings.namespace_scope
    terms = MarkerTerms(seconds.lease_duration_seconds, seconds.renew_interval_seconds)
    holder = f"namespace-restricted-operator-{settings.operator_version or version()}"
    marker = NamespaceLease(client, Key(namespace, LEASE), holder=holder, replicas=_REPLICAS, terms=terms)
    return Scope((marker,))


RECONCILED: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)
"""The kinds of today that the operator reconciles."""

_APPLIED = f"{labels.APP_MANAGED_BY}={labels.MANAGER}"
_SELECTED: Mapping[type[Resource], str] = {
    kinds.ServiceAccount: _APPLIED,
    cluster.PodServiceAccount: f"{labels.COMPONENT_POD}=true",
    kinds.Role: _APPLIED,
    kinds.RoleBinding: _APPLIED,
    kinds.Service: labels.COMPONENT,
    cluster.ModelService: f"{labels.BASE_MODEL_HASH},!{labels.COMPONENT}",
    kinds.Ingress: labels.COMPONENT,
    kinds.Deployment: labels.COMPONENT,
    kinds.PodDisruptionBudget: labels.COMPONENT,
}
"""Kinds that others use too, by a label that every object of ours has."""

_READ = (cluster.PodServiceAccount, cluster.ModelService)
"""Types of foreign objects, and types that the selected label defines."""

_OPTIONAL: Mapping[type[Resource], tuple[str, int]] = {
    # a component has one for each replica
    cluster.LeaderWorkerSet: (labels.INSTANCE, MAX_GROUPS_BYTES),
    cluster.PodGroup: (labels.INSTANCE, MAX_GROUPS_BYTES),
    cluster.PodCliqueSet: ("", transforms.OWNED_BYTES),
    cluster.PodClique: ("", 0),
    cluster.PodCliqueScalingGroup: ("", 0),
    cluster.Queue: ("", 0),
    cluster.InferencePool: (labels.COMPONENT, transforms.OWNED_BYTES),
    cluster.VirtualService: (labels.COMPONENT, transforms.OWNED_BYTES),
}
"""Kinds of other projects, watched while they are installed: the label of our objects, most bytes per owner.

Kinds of Grove have no label: sets have only the user's, and Grove creates their children. Of what Grove or an
administrator creates (0 bytes) only some fields are read.
"""


def unselected(settings: RenderSettings) -> dict[type[Resource], Selector]:
    """By type, the selector of objects that may be ours although its watch does not select them."""
    selected = {**_SELECTED, **{type_: selector for type_, (selector, _) in _OPTIONAL.items()}}
    return {
        type_: Selector(settings.restricted_namespace, complement(selector))
        for type_, selector in selected.items()
        if selector and type_ not in _READ
    }


def informers(settings: RenderSettings, *, with_legacy_kinds: bool = False) -> Informers:
    """One informer for each watched type, limited to the restricted namespace if there is one."""
    namespace = settings.restricted_namespace
    statuses = BoundedStatuses(NAMESPACE_BYTES)
    reconciled = [
        bounded(type_, statuses, namespace=namespace, most_bytes=most_bytes(type_, settings))
        for type_ in RECONCILED
    ]
    if with_legacy_kinds:
        of_older = cast("Callable[[RenderSettings], Informers]", older_generation("kinds"))
        reconciled += of_older(settings)
    owners = Owners(reconciled)
    by_setting = [*request_informers(namespace)]
    if with_legacy_kinds:
        for_older = cast("Callable[[RenderSettings, Owners], Informers]", older_generation("informers"))
        by_setting += for_older(settings, owners)
    by_setting += ssh_key_informers(settings, owners)
    return [*reconciled, *_always(namespace, owners), *by_setting]


def _always(namespace: str, owners: Owners) -> Informers:
    # Users may put these labels on their own objects.
    by_label: list[tuple[type[Any], str]] = [*_SELECTED.items(), (kinds.ConfigMap, labels.COMPONENT)]
    selected = [children(type_, owners, namespace=namespace, labels=label) for type_, label in by_label]

    def slim(type_: type[R], selector: str, transform: Callable[[R], R] = slimmed) -> Informer[R]:
        return Informer(type_, namespace=namespace, labels=selector, transform=transform)

    secrets = Informer(
        cluster.PullSecret,
        namespace=namespace,
        fields="type=kubernetes.io/dockerconfigjson",
        transform=transforms.registries_only,
    )
    pods = Informer(Pod, namespace=namespace, labels=POD_SELECTOR, transform=reduced_pod)
    definitions, taken = CrdInformer(), Counter[str]()

    def optional(type_: type[R], selector: str, most_bytes: int) -> Informer[R]:
        granted_by = cluster.granted_by(type_.KIND)
        make: Callable[..., Informer[R]] = partial(OptionalInformer, crds=definitions, granted_by=granted_by)
        if not most_bytes:
            return make(type_, namespace=namespace, labels=selector, transform=slimmed)
        content = BoundedContent(owners.owner_of, most_bytes, MAX_GROUPS_BYTES, taken)
        return bounded(type_, content, make, owners.informers, namespace=namespace, labels=selector)

    return [
        *selected,
        slim(kinds.PersistentVolumeClaim, ""),  # graphs name those of users
        secrets,
        pods,
        slim(kinds.EndpointSlice, SLICE_SELECTOR, transforms.slimmed_slice),
        slim(kinds.StatefulSet, cluster.SET_NAME, transforms.slimmed_set),
        slim(kinds.ControllerRevision, labels.GRAPH_REVISION, transforms.metadata_only),
        definitions,
        *(optional(type_, *kept) for type_, kept in _OPTIONAL.items()),
    ]
