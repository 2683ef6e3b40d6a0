"""What the operator watches: its namespaces, the marker Lease, and an informer for each type."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from dynamo_operator import labels, older_generation, version
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.read import SELECTOR as POD_SELECTOR
from dynamo_operator.component.read import reduced_pod
from dynamo_operator.component.validate import most_bytes
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.features.ssh_keys import ssh_key_informers
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.read import SLICE_SELECTOR
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.requests.read import request_informers
from dynamo_operator.settings import RenderSettings, Settings
from dynamo_operator.shared import cluster, transforms
from dynamo_operator.shared.transforms import Owners, children, slimmed
from kube_runtime.apply.writer import complement
from kube_runtime.cache.informer import CrdInformer, Informer, OptionalInformer
from kube_runtime.client.client import Client
from kube_runtime.controller.manager import Manager
from kube_runtime.leases import Exclusions, MarkerTerms, NamespaceLease
from kube_runtime.types import kinds
from kube_runtime.types.kinds import Lease, Pod
from kube_runtime.types.meta import Key, R, Resource, Selector

Informers: TypeAlias = list[Informer[Any]]

LEASE = "dynamo-operator-namespace-scope"
"""The name of the marker Lease."""

_REPLICAS = "replica.dynamo.nvidia.com"


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespaces that this operator manages.

    `marker` is the lease of a restricted operator; a cluster-wide one has `exclusions`, filled by
    `informers`.
    """

    marker: NamespaceLease | None = None
    exclusions: Exclusions | None = None
    informers: tuple[Informer[Lease], ...] = ()

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


# Names and texts are those of the Go operator, so both operators respect each other.
# `docs/tenancy.md` describes what a forged Lease can do.
def scope_of(client: Client, settings: Settings) -> Scope:
    """The scope that the settings describe; nothing is written yet."""
    namespace = settings.render.restricted_namespace
    if not namespace:
        # Only leases of restricted operators are sent, not the many of nodes and controllers.
        informer = Informer(Lease, fields=f"metadata.name={LEASE}")
        return Scope(exclusions=Exclusions(client, informer.store), informers=(informer,))
    seconds = settings.namespace_scope
    terms = MarkerTerms(seconds.lease_duration_seconds, seconds.renew_interval_seconds)
    holder = f"namespace-restricted-operator-{settings.operator_version or version()}"
    return Scope(
        NamespaceLease(client, Key(namespace, LEASE), holder=holder, replicas=_REPLICAS, terms=terms)
    )


_RECONCILED: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)
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

_OPTIONAL: Mapping[type[Resource], str] = {
    cluster.LeaderWorkerSet: labels.INSTANCE,
    cluster.PodGroup: labels.INSTANCE,
    cluster.PodCliqueSet: "",
    cluster.PodClique: "",
    cluster.PodCliqueScalingGroup: "",
    cluster.Queue: "",
    cluster.InferencePool: labels.COMPONENT,
    cluster.VirtualService: labels.COMPONENT,
}
"""Kinds of other projects, watched while they are installed, by the label of our objects.

Kinds of Grove have none: sets have only the user's labels, and Grove creates their children. Queues are
only read.
"""


_OF_OTHERS = (cluster.PodClique, cluster.PodCliqueScalingGroup, cluster.Queue)
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

    def slim(type_: type[R], selector: str) -> Informer[R]:
        return Informer(type_, namespace=namespace, labels=selector, transform=slimmed)

    secrets = Informer(
        cluster.PullSecret,
        namespace=namespace,
        fields="type=kubernetes.io/dockerconfigjson",
        transform=transforms.registries_only,
    )
    pods = Informer(Pod, namespace=namespace, labels=POD_SELECTOR, transform=reduced_pod)
    definitions = CrdInformer()
    optional = [
        OptionalInformer(
            type_,
            definitions,
            namespace=namespace,
            labels=selector,
            granted_by=cluster.granted_by(type_.KIND),
            transform=slimmed if type_ in _OF_OTHERS else transforms.BoundedContent(owners.owner_of, 0),
        )
        for type_, selector in _OPTIONAL.items()
    ]
    for informer in optional:
        informer.after = owners.informers
    return [
        *selected,
        slim(kinds.PersistentVolumeClaim, ""),  # graphs name those of users
        secrets,
        pods,
        slim(kinds.EndpointSlice, SLICE_SELECTOR),
        slim(kinds.StatefulSet, cluster.SET_NAME),
        slim(kinds.ControllerRevision, labels.GRAPH_REVISION),
        definitions,
        *optional,
    ]
