"""What the operator watches: its namespaces, the marker Lease, and an informer for each type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from dynamo_operator import labels, older_generation, version
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.read import SELECTOR as POD_SELECTOR
from dynamo_operator.component.validate import most_bytes
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.features.ssh_keys import ssh_key_informers
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.read import SLICE_SELECTOR
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.requests.read import request_informers
from dynamo_operator.settings import RenderSettings, Settings
from dynamo_operator.shared.cluster import (
    SET_NAME,
    InferencePool,
    LeaderWorkerSet,
    ModelService,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodGroup,
    PodServiceAccount,
    PullSecret,
    Queue,
    VirtualService,
    granted_by,
)
from dynamo_operator.shared.transforms import (
    BoundedContent,
    Owners,
    children,
    reduced_pod,
    registries_only,
    slimmed,
)
from kube_runtime.apply.writer import complement
from kube_runtime.cache.informer import CrdInformer, Informer, OptionalInformer
from kube_runtime.client.client import Client
from kube_runtime.controller.manager import Manager
from kube_runtime.leases import Exclusions, MarkerTerms, NamespaceLease
from kube_runtime.types.kinds import (
    ConfigMap,
    ControllerRevision,
    Deployment,
    EndpointSlice,
    Ingress,
    Lease,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    Role,
    RoleBinding,
    Service,
    ServiceAccount,
    StatefulSet,
)
from kube_runtime.types.meta import Key, Resource, Selector

Informers: TypeAlias = list[Informer[Any]]

LEASE = "dynamo-operator-namespace-scope"
"""The name of the marker Lease."""

_REPLICAS = "replica.dynamo.nvidia.com"


# Names and texts are those of the Go operator, so both operators respect each other.
# `docs/tenancy.md` describes what a forged Lease can do.
@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces that this operator manages.

    `marker` is the lease of a restricted operator; a cluster-wide one has `exclusions`, filled by
    `informers`.
    """

    marker: NamespaceLease | None
    exclusions: Exclusions | None
    informers: tuple[Informer[Lease], ...]

    @property
    def excluded(self) -> Mapping[str, object]:
        """The namespaces that other operators manage now: nothing is written or validated there."""
        return self.exclusions.namespaces if self.exclusions is not None else {}

    @property
    def leases(self) -> tuple[NamespaceLease, ...]:
        """The lease of a restricted operator's namespace, without which it may not write; else none."""
        return () if self.marker is None else (self.marker,)

    async def claim(self) -> None:
        """Acquire the lease of a restricted operator's namespace, before anything else is written there.

        Raises:
            OperatorError: that failed.
        """
        if self.marker is not None:
            await self.marker.claim()

    async def release(self) -> None:
        """Release the lease, after an orderly stop only."""
        if self.marker is not None:
            await self.marker.release()

    def join(self, manager: Manager) -> None:
        """Have the manager renew the lease, or watch those of others, on every replica."""
        for informer in self.informers:
            manager.inform(informer)
        if self.marker is not None:
            manager.serve(self.marker)
            self.marker.on_regained = manager.wake_namespace
        if self.exclusions is not None:
            manager.serve(self.exclusions)
            self.exclusions.on_end = manager.wake_namespace


def scope_of(client: Client, settings: Settings) -> Scope:
    """The scope that the settings describe; nothing is written yet."""
    namespace = settings.render.restricted_namespace
    if not namespace:
        # Only leases of restricted operators are sent, not the many of nodes and controllers.
        informer = Informer(Lease, fields=f"metadata.name={LEASE}")
        return Scope(None, Exclusions(client, informer.store), (informer,))
    lease_settings = settings.namespace_scope
    marker = NamespaceLease(
        client,
        Key(namespace, LEASE),
        holder=f"namespace-restricted-operator-{settings.operator_version or version()}",
        replicas=_REPLICAS,
        terms=MarkerTerms(lease_settings.lease_duration_seconds, lease_settings.renew_interval_seconds),
    )
    return Scope(marker, None, ())


_RECONCILED: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)
_APPLIED = f"{labels.APP_MANAGED_BY}={labels.MANAGER}"
_SELECTED: Mapping[type[Resource], str] = {
    ServiceAccount: _APPLIED,
    PodServiceAccount: f"{labels.COMPONENT_POD}=true",
    Role: _APPLIED,
    RoleBinding: _APPLIED,
    Service: labels.COMPONENT,
    ModelService: f"{labels.BASE_MODEL_HASH},!{labels.COMPONENT}",
    Ingress: labels.COMPONENT,
    Deployment: labels.COMPONENT,
    PodDisruptionBudget: labels.COMPONENT,
}
"""Kinds that others use too, by a label that every object of ours has."""

_READ = (PodServiceAccount, ModelService)
"""Types of foreign objects, and types that the selected label defines."""

_OPTIONAL: Mapping[type[Resource], str] = {
    LeaderWorkerSet: labels.INSTANCE,
    PodGroup: labels.INSTANCE,
    PodCliqueSet: "",
    PodClique: "",
    PodCliqueScalingGroup: "",
    Queue: "",
    InferencePool: labels.COMPONENT,
    VirtualService: labels.COMPONENT,
}
"""Kinds of other projects, watched while they are installed, by the label of our objects.

Kinds of Grove have none: sets have only the user's labels, and Grove creates their children. Queues are
only read.
"""


_OF_OTHERS = (PodClique, PodCliqueScalingGroup, Queue)
"""Optional kinds whose objects Grove or an administrator creates."""


def unselected(settings: RenderSettings) -> dict[type[Resource], Selector]:
    """By type, the selector of objects that may be ours although its watch does not select them."""
    selected = {**_SELECTED, **_OPTIONAL}
    return {
        type_: Selector(settings.restricted_namespace, complement(selector))
        for type_, selector in selected.items()
        if selector and type_ not in _READ
    }


def informers(settings: RenderSettings, *, with_legacy_kinds: bool = False) -> Informers:
    """One informer for each watched type, limited to the restricted namespace if there is one."""
    namespace = settings.restricted_namespace
    reconciled = [
        Informer(type_, namespace=namespace, most_bytes=most_bytes(type_, settings)) for type_ in _RECONCILED
    ]
    by_setting = [*request_informers(namespace)]
    if with_legacy_kinds:
        kinds = cast("Callable[[RenderSettings], Informers]", older_generation("kinds"))
        reconciled += kinds(settings)
        owners = Owners(reconciled)
        of_older = cast("Callable[[RenderSettings, Owners], Informers]", older_generation("informers"))
        by_setting += of_older(settings, owners)
    else:
        owners = Owners(reconciled)
    by_setting += ssh_key_informers(settings, owners)
    return [*reconciled, *_always(namespace, owners), *by_setting]


def _always(namespace: str, owners: Owners) -> Informers:
    """The informers of other kinds that no setting switches off."""
    # Users may put these labels on their own objects.
    children_by_label: list[tuple[type[Any], str]] = [
        *_SELECTED.items(),
        (ConfigMap, labels.COMPONENT),
    ]
    selected: Informers = [
        children(type_, owners, namespace=namespace, labels=selector) for type_, selector in children_by_label
    ]
    # Graphs name PVCs of users. Only their metadata is kept.
    claims = Informer(PersistentVolumeClaim, namespace=namespace, transform=slimmed)
    secrets = Informer(
        PullSecret,
        namespace=namespace,
        fields="type=kubernetes.io/dockerconfigjson",
        transform=registries_only,
    )
    pods = Informer(Pod, namespace=namespace, labels=POD_SELECTOR, transform=reduced_pod)
    slices = Informer(EndpointSlice, namespace=namespace, labels=SLICE_SELECTOR, transform=slimmed)
    leaders = Informer(StatefulSet, namespace=namespace, labels=SET_NAME, transform=slimmed)
    former = Informer(
        ControllerRevision, namespace=namespace, labels=labels.GRAPH_REVISION, transform=slimmed
    )
    definitions = CrdInformer()
    optional = [
        OptionalInformer(
            type_,
            definitions,
            namespace=namespace,
            labels=selector,
            granted_by=granted_by(type_.KIND),
            transform=slimmed if type_ in _OF_OTHERS else BoundedContent(owners.owner_of, 0),
        )
        for type_, selector in _OPTIONAL.items()
    ]
    for informer in optional:
        informer.after = owners.informers
    watched = (claims, secrets, pods, slices, leaders, former, definitions)
    return [*selected, *watched, *optional]
