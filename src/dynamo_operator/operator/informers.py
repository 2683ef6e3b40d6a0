"""What is read from the API server: one informer for each kind, and how much of an object is kept."""

from typing import Any

from dynamo_operator.api import labels
from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.model import DynamoModel
from dynamo_operator.api.optional_apis import granted_by
from dynamo_operator.api.request import DynamoGraphDeploymentRequest
from dynamo_operator.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.controllers.foreign import reduced_unless_ours
from dynamo_operator.controllers.gather import registries_only
from dynamo_operator.controllers.model_surroundings import SLICE_SELECTOR
from dynamo_operator.controllers.pods import SELECTOR as POD_SELECTOR
from dynamo_operator.controllers.pods import reduced as reduced_pod
from dynamo_operator.controllers.request_facts import request_informers
from dynamo_operator.controllers.ssh_keys import ssh_key_informers
from dynamo_operator.kube.informer import Informer
from dynamo_operator.kube.optional import Definitions, OptionalInformer
from dynamo_operator.kube.types.apps import Deployment, StatefulSet
from dynamo_operator.kube.types.core import (
    ConfigMap,
    PersistentVolumeClaim,
    Pod,
    PullSecret,
    Service,
    ServiceAccount,
)
from dynamo_operator.kube.types.discovery import EndpointSlice
from dynamo_operator.kube.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_operator.kube.types.inference import InferencePool
from dynamo_operator.kube.types.istio import VirtualService
from dynamo_operator.kube.types.kai import Queue
from dynamo_operator.kube.types.leaderworkerset import SET_NAME, LeaderWorkerSet
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.kube.types.networking import Ingress
from dynamo_operator.kube.types.policy import PodDisruptionBudget
from dynamo_operator.kube.types.rbac import Role, RoleBinding
from dynamo_operator.kube.types.volcano import PodGroup
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation.size import most_bytes

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
    children = [Informer(each, namespace=namespace, keep=reduced_unless_ours) for each in _CHILDREN]
    secrets = Informer(
        PullSecret,
        namespace=namespace,
        fields="type=kubernetes.io/dockerconfigjson",
        keep=registries_only,
    )
    # ConfigMaps are many and large; ours are those of components.
    configs = Informer(ConfigMap, namespace=namespace, labels=labels.COMPONENT)
    pods = Informer(Pod, namespace=namespace, labels=POD_SELECTOR, keep=reduced_pod)
    slices = Informer(EndpointSlice, namespace=namespace, labels=SLICE_SELECTOR)
    leaders = Informer(StatefulSet, namespace=namespace, labels=SET_NAME)
    definitions = Definitions()
    optional = [
        OptionalInformer(each, definitions, namespace=namespace, granted_by=granted_by(each.KIND))
        for each in _OPTIONAL
    ]
    watched = (secrets, configs, pods, slices, leaders, definitions)
    return [*reconciled, *children, *watched, *optional]
