"""What is read from the API server: one informer for each kind, and how much of an object is kept."""

from typing import Any

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.optional_apis import granted_by
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_graphs.types.inference import InferencePool
from dynamo_graphs.types.istio import VirtualService
from dynamo_graphs.types.kai import Queue
from dynamo_graphs.types.leaderworkerset import SET_NAME, LeaderWorkerSet
from dynamo_graphs.types.volcano import PodGroup
from dynamo_graphs.validation.size import most_bytes
from dynamo_operator.lora.read import SLICE_SELECTOR
from dynamo_operator.reconcile.pods import SELECTOR as POD_SELECTOR
from dynamo_operator.reconcile.pods import reduced as reduced_pod
from dynamo_operator.reconcile.read import registries_only
from dynamo_operator.reconcile.ssh_keys import ssh_key_informers
from dynamo_operator.reconcile.transforms import strip_unowned
from dynamo_operator.requests.inputs import request_informers
from kube_runtime.cache.crd_informer import CrdInformer, OptionalInformer
from kube_runtime.cache.informer import Informer
from kube_runtime.types.apps import Deployment, StatefulSet
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

_RECONCILED: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)
_CHILDREN: tuple[type[Resource], ...] = (
    ServiceAccount,
    Role,
    RoleBinding,
    Service,
    Ingress,
    Deployment,
    PodDisruptionBudget,
    PersistentVolumeClaim,
)
_OPTIONAL: tuple[type[Resource], ...] = (
    LeaderWorkerSet,
    PodGroup,
    PodCliqueSet,
    PodClique,
    PodCliqueScalingGroup,
    Queue,
    InferencePool,
    VirtualService,
)
"""Kinds of other projects, used while they are installed."""


def informers(settings: RenderSettings) -> list[Informer[Any]]:
    """One informer for each kind that is read; of the restricted namespace only, if there is one."""
    namespace = settings.restricted_namespace
    return [
        *_always(settings),
        *ssh_key_informers(settings),
        *request_informers(namespace),
    ]


def _always(settings: RenderSettings) -> list[Informer[Any]]:
    """The informers that no setting switches off."""
    namespace = settings.restricted_namespace
    reconciled = [
        Informer(each, namespace=namespace, most_bytes=most_bytes(each, settings))
        for each in _RECONCILED
    ]
    children = [Informer(each, namespace=namespace, transform=strip_unowned) for each in _CHILDREN]
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
    definitions = CrdInformer()
    optional = [
        OptionalInformer(each, definitions, namespace=namespace, granted_by=granted_by(each.KIND))
        for each in _OPTIONAL
    ]
    watched = (secrets, configs, pods, slices, leaders, definitions)
    return [*reconciled, *children, *watched, *optional]
