"""The informers: which objects the operator watches, and what the cache keeps of them."""

from collections.abc import Mapping
from typing import Any

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_graphs.types.optional_apis import (
    SET_NAME,
    InferencePool,
    LeaderWorkerSet,
    PodGroup,
    Queue,
    VirtualService,
    granted_by,
)
from dynamo_graphs.types.secrets import PullSecret
from dynamo_graphs.types.selected import ModelService, PodServiceAccount
from dynamo_graphs.validation.bounds import most_bytes
from dynamo_operator.lora.read import SLICE_SELECTOR
from dynamo_operator.reconcile.owned_content import BoundedContent, Owners, children
from dynamo_operator.reconcile.pods import SELECTOR as POD_SELECTOR
from dynamo_operator.reconcile.ssh_keys import ssh_key_informers
from dynamo_operator.reconcile.transforms import reduced_pod, registries_only, slimmed
from dynamo_operator.requests.read import request_informers
from kube_runtime.apply.unselected import complement
from kube_runtime.cache.crd_informer import CrdInformer, OptionalInformer
from kube_runtime.cache.informer import Informer
from kube_runtime.types.apps import ControllerRevision, Deployment, StatefulSet
from kube_runtime.types.core import ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount
from kube_runtime.types.discovery import EndpointSlice
from kube_runtime.types.meta import Resource
from kube_runtime.types.networking import Ingress
from kube_runtime.types.policy import PodDisruptionBudget
from kube_runtime.types.rbac import Role, RoleBinding
from kube_runtime.watch.selector import Selector

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


def informers(settings: RenderSettings, *, with_legacy_kinds: bool = False) -> list[Informer[Any]]:
    """One informer for each watched type, limited to the restricted namespace if there is one."""
    namespace = settings.restricted_namespace
    reconciled = [
        Informer(type_, namespace=namespace, most_bytes=most_bytes(type_, settings))
        for type_ in _RECONCILED
    ]
    by_setting = [*request_informers(namespace)]
    if with_legacy_kinds:
        from dynamo_operator.process.legacy import legacy_informers, legacy_kinds

        reconciled += legacy_kinds(settings)
        owners = Owners(reconciled)
        by_setting += legacy_informers(settings, owners)
    else:
        owners = Owners(reconciled)
    by_setting += ssh_key_informers(settings, owners)
    return [*reconciled, *_always(namespace, owners), *by_setting]


def _always(namespace: str, owners: Owners) -> list[Informer[Any]]:
    """The informers of other kinds that no setting switches off."""
    # Users may put these labels on their own objects.
    children_by_label: list[tuple[type[Any], str]] = [
        *_SELECTED.items(),
        (ConfigMap, labels.COMPONENT),
    ]
    selected: list[Informer[Any]] = [
        children(type_, owners, namespace=namespace, labels=selector)
        for type_, selector in children_by_label
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
