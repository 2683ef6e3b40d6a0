"""What is read from the API server: one informer for each kind, and how much of an object is kept."""

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
from dynamo_graphs.types.selected import ModelService, PodServiceAccount
from dynamo_graphs.validation.size import most_bytes
from dynamo_operator.lora.read import SLICE_SELECTOR
from dynamo_operator.reconcile.pods import SELECTOR as POD_SELECTOR
from dynamo_operator.reconcile.pods import reduced as reduced_pod
from dynamo_operator.reconcile.read import registries_only
from dynamo_operator.reconcile.ssh_keys import ssh_key_informers
from dynamo_operator.reconcile.transforms import strip_unowned
from dynamo_operator.requests.read import request_informers
from kube_runtime.apply.unselected import complement
from kube_runtime.cache.crd_informer import CrdInformer, OptionalInformer
from kube_runtime.cache.informer import Informer
from kube_runtime.types.apps import ControllerRevision, Deployment, StatefulSet
from kube_runtime.types.core import (
    ConfigMap,
    PersistentVolumeClaim,
    Pod,
    PullSecret,
    Service,
    ServiceAccount,
)
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
"""What we write of kinds that others have as well, by a label that each of those objects has."""

_READ = (PodServiceAccount, ModelService)
"""Types of objects that are not ours, or that all have the label that makes them such."""

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
"""Kinds of other projects, used while they are installed, with the label of our objects.

The kinds of Grove have none: the sets carry the user's labels only, their parts are Grove's. Queues are read.
"""


def unselected(settings: RenderSettings) -> dict[type[Resource], Selector]:
    """By type, the selector of objects that its watch does not bring, although they may be ours.

    Of two types of one kind that is one; marked ServiceAccounts are not ours.
    """
    selected = {**_SELECTED, **_OPTIONAL}
    return {
        type_: Selector(settings.restricted_namespace, complement(selector))
        for type_, selector in selected.items()
        if selector and type_ not in _READ
    }


def informers(settings: RenderSettings, *, with_legacy_kinds: bool = False) -> list[Informer[Any]]:
    """One informer for each kind that is read; of the restricted namespace only, if there is one."""
    namespace = settings.restricted_namespace
    chosen = [*ssh_key_informers(settings), *request_informers(namespace)]
    if with_legacy_kinds:
        from dynamo_operator.process.legacy import legacy_informers

        chosen += legacy_informers(settings)
    return [*_always(settings), *chosen]


def _always(settings: RenderSettings) -> list[Informer[Any]]:
    """The informers that no setting switches off."""
    namespace = settings.restricted_namespace
    reconciled = [
        Informer(type_, namespace=namespace, most_bytes=most_bytes(type_, settings))
        for type_ in _RECONCILED
    ]
    # Users may put the label on their objects too.
    children = [
        Informer(type_, namespace=namespace, labels=selector, transform=strip_unowned)
        for type_, selector in _SELECTED.items()
    ]
    # Graphs name PVCs of users. They are read as metadata, and change with neither use nor load.
    claims = Informer(PersistentVolumeClaim, namespace=namespace, transform=strip_unowned)
    secrets = Informer(
        PullSecret,
        namespace=namespace,
        fields="type=kubernetes.io/dockerconfigjson",
        transform=registries_only,
    )
    # ConfigMaps are many and large; ours are those of components.
    configs = Informer(ConfigMap, namespace=namespace, labels=labels.COMPONENT)
    pods = Informer(Pod, namespace=namespace, labels=POD_SELECTOR, transform=reduced_pod)
    slices = Informer(EndpointSlice, namespace=namespace, labels=SLICE_SELECTOR)
    leaders = Informer(StatefulSet, namespace=namespace, labels=SET_NAME)
    former = Informer(ControllerRevision, namespace=namespace, labels=labels.GRAPH_REVISION)
    definitions = CrdInformer()
    optional = [
        OptionalInformer(
            *(type_, definitions),
            namespace=namespace,
            labels=selector,
            granted_by=granted_by(type_.KIND),
        )
        for type_, selector in _OPTIONAL.items()
    ]
    watched = (claims, secrets, configs, pods, slices, leaders, former, definitions)
    return [*reconciled, *children, *watched, *optional]
