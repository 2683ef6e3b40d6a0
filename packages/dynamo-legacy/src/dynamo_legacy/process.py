"""Informers and controllers of the older generation. Imported only if its kinds are enabled."""

import os
from dataclasses import replace
from itertools import repeat
from typing import Any

from dynamo_legacy import names
from dynamo_legacy.api import DynamoDeployment, DynamoNim, DynamoNimDeployment, DynamoNimRequest
from dynamo_legacy.build.plan import Reason
from dynamo_legacy.deployment import DeploymentController
from dynamo_legacy.fetch import ArchiveStore
from dynamo_legacy.names import GraphConfigMap, HorizontalPodAutoscaler, ServicePodAccount
from dynamo_legacy.nim import NimController
from dynamo_legacy.request import ImageRequestController, request_informers
from dynamo_legacy.settings import read_legacy_settings
from dynamo_legacy.status import AVAILABLE, NIM_AVAILABLE, READY, DeploymentReason, NimReason
from dynamo_operator import labels
from dynamo_operator.component.read import PodIndex
from dynamo_operator.process.operator import Parts
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.conditions import FailureReasons
from dynamo_operator.shared.transforms import (
    NAMESPACE_BYTES,
    BoundedContent,
    Owners,
    bounded,
    children,
    namespace_of,
    slimmed,
)
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.writer import ManagedFieldsUpgrade
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import BoundedStatuses
from kube_runtime.types.meta import Resource

_WORKERS = 256
"""Of the controllers that wait for archives and registries: a few slow ones of a tenant hold up no others."""

_EARLIER_OPERATOR = "banzaicloud.com/last-applied"
"""The annotation in which the operator of that generation recorded what it applied."""


_OF_DEPLOYMENTS = FailureReasons((READY,), *repeat(DeploymentReason.UNDEFINED, 3))
_OF_NIMS = FailureReasons((AVAILABLE,), *repeat(NimReason.RECONCILING, 3))
_OF_IMAGES = FailureReasons(
    (NIM_AVAILABLE,), Reason.VALIDATION_FAILED, Reason.VALIDATION_FAILED, Reason.BUILD_FAILED
)


def legacy_kinds(settings: RenderSettings) -> list[Informer[Any]]:
    """The informers of these kinds themselves."""
    namespace, most, statuses = (
        settings.restricted_namespace,
        settings.largest_object_bytes,
        BoundedStatuses(NAMESPACE_BYTES),
    )
    written = (DynamoDeployment, DynamoNimRequest, DynamoNim)
    return [
        *(bounded(type_, statuses, namespace=namespace, most_bytes=most) for type_ in written),
        # A component repeats what its deployment sets for all services, so it may be larger.
        bounded(DynamoNimDeployment, statuses, namespace=namespace, most_bytes=most + most // 8),
    ]


def legacy_informers(settings: RenderSettings, owners: Owners) -> list[Informer[Any]]:
    """The informers of what these kinds need, beside those that today's kinds need too.

    Raises: ConfigErrors, if the settings of these kinds are invalid.
    """
    namespace = settings.restricted_namespace
    return [
        children(HorizontalPodAutoscaler, owners, namespace=namespace, labels=labels.COMPONENT),
        bounded(GraphConfigMap, BoundedContent(namespace_of), namespace=namespace, labels=names.GRAPH_CONFIG),
        Informer(
            ServicePodAccount, namespace=namespace, labels=f"{names.COMPONENT_POD}=true", transform=slimmed
        ),
        *request_informers(namespace, read_legacy_settings(os.environ)),
    ]


def control(parts: Parts, pods: PodIndex) -> None:
    """Add the controllers of these kinds to the manager."""
    legacy = read_legacy_settings(os.environ)
    applier, settings = parts.applier(), parts.settings.render
    applier.take_over = ManagedFieldsUpgrade(parts.writer, _EARLIER_OPERATOR)
    cache = parts.cache
    reporter = parts.reporter("dynamonimdeployment", StatusRateLimit(goal=AVAILABLE), _OF_NIMS)
    of_nims = parts.options_reporting(DynamoNimDeployment, reporter)
    nims = NimController(cache, applier, reporter, pods, settings, legacy)
    store = ArchiveStore(legacy) if legacy.endpoint else None
    reporter = parts.reporter("dynamodeployment", StatusRateLimit(goal=READY), _OF_DEPLOYMENTS)
    of_deployments = replace(parts.options_reporting(DynamoDeployment, reporter), workers=_WORKERS)
    deployments = DeploymentController(cache, applier, reporter, store, settings, legacy)
    reporter = parts.reporter("dynamonimrequest", StatusRateLimit(), _OF_IMAGES)
    of_images = replace(parts.options_reporting(DynamoNimRequest, reporter), workers=_WORKERS)
    images = ImageRequestController(cache, applier, reporter, settings, legacy)
    parts.manager.control(nims, of_nims)
    parts.manager.control(deployments, of_deployments)
    parts.manager.control(images, of_images)
    validated = (controller.validated.forget for controller in (nims, deployments))
    failing = (controller.reporter.failing.forget for controller in (nims, deployments, images))
    memories = (applier.forget, parts.events.forget, *validated, *failing)
    types: tuple[type[Resource], ...] = (
        *nims.owns,
        *deployments.owns,
        *images.owns,
        DynamoDeployment,
        DynamoNimRequest,
    )
    for type_ in types:
        cache.subscribe_deleted(type_, *memories)
