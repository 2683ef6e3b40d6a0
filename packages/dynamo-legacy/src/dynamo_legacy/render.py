"""Render the objects of a DynamoNimDeployment, with the renderer of today's components.

The plan for that renderer contains the differences: labels, ports of the Service, variables that identify a
process, and defaults of pods.
"""

from collections.abc import Sequence
from dataclasses import replace

from dynamo_graphs.api import labels as todays
from dynamo_graphs.api import names
from dynamo_graphs.facts import Facts, NamespaceDefaults
from dynamo_graphs.render.component import ingresses, services, virtual_services
from dynamo_graphs.render.interfaces import Backend, ComponentPlan, Role
from dynamo_graphs.render.merge import canonical, variable
from dynamo_graphs.render.metadata import object_metadata
from dynamo_graphs.render.plan import component_plan
from dynamo_graphs.settings import RenderSettings
from dynamo_legacy import names as legacy_names
from dynamo_legacy.api.component import Autoscaling
from dynamo_legacy.api.nim import DynamoNimSpec
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.translate import (
    HTTP_PORT,
    as_component,
    claim_name,
    first_of_each_name,
    http_port,
)
from dynamo_legacy.types import object_of
from kube_runtime.kind import Object
from kube_runtime.types.autoscaling import HorizontalPodAutoscaler
from kube_runtime.types.core import PersistentVolumeClaim

_GRACE_SECONDS = 30
"""The default of Kubernetes: that generation set no grace period."""
_CPU: Object = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_OURS = frozenset(
    (*todays.SELECTING, legacy_names.SELECTOR, legacy_names.DEPLOYMENT, legacy_names.TARGET_TYPE)
)
"""Labels in selectors. Values of users for them are ignored."""


_ROLE = Role(
    # The port of the process, and the one that bypassed a proxy that no longer exists.
    service_ports=tuple(
        {"name": name, "port": port, "targetPort": "http", "protocol": "TCP"}
        for name, port in (("http", HTTP_PORT), ("http-non-proxy", HTTP_PORT + 1))
    ),
    container=lambda _plan: {"name": "main"},
    pod=lambda _plan: {"securityContext": {}, "terminationGracePeriodSeconds": _GRACE_SECONDS},
)
"""A process that serves HTTP on one port, behind a Service with two; the component sets the rest."""


def _backend(environment: Sequence[Object]) -> Backend:
    """A backend that only sets the environment of that generation.

    Variables keep the user's order: one may refer to an earlier one.
    """
    return Backend(container=lambda main, _plan: {**main, "env": list(environment)})


def _plan(
    nim: DynamoNimDeployment,
    image: DynamoNimSpec,
    facts: Facts,
    settings: RenderSettings,
    legacy: LegacySettings,
) -> ComponentPlan:
    """The plan of a component of that generation."""
    component = as_component(nim, image, settings, legacy)
    plan = component_plan(component, facts, settings)
    defaults = facts.running_defaults.get(nim.metadata.name, nim_namespace_defaults(facts))
    own = _labels(nim, image)
    users = {key: text for key, text in nim.spec.labels.items() if key not in _OURS}
    extra = nim.spec.extra_pod_metadata
    extra_labels = {
        key: text for key, text in (extra.labels if extra else {}).items() if key not in _OURS
    }
    tagged = {key: own[key] for key in (legacy_names.REPOSITORY, legacy_names.VERSION)}
    fixed = {todays.COMPONENT: names.label_value(nim.metadata.name), **own}
    return replace(
        plan,
        role=_ROLE,
        backend=_backend(_environment(nim, plan)),
        selector={legacy_names.DEPLOYMENT: own[legacy_names.DEPLOYMENT]},
        workload_label=legacy_names.SELECTOR,
        labels=users | fixed,
        annotations=tagged | plan.annotations,
        pod_labels=users | fixed | extra_labels,
        pod_annotations=tagged | plan.pod_annotations,
        discovery_backend="etcd",
        namespace_defaults=defaults,
        service_account=defaults.service_account_name or "default",
    )


def nim_namespace_defaults(facts: Facts) -> NamespaceDefaults:
    """Return what new pods of a component get from their namespace now: no pull secrets are looked up."""
    return NamespaceDefaults(service_account_name=facts.component_service_account)


def nim_objects(  # what a worker process gets
    nim: DynamoNimDeployment,
    image: DynamoNimSpec,
    facts: Facts,
    settings: RenderSettings,
    legacy: LegacySettings,
    live_replicas: int | None = None,
) -> tuple[Sequence[Object], Sequence[Object]]:
    """Render the objects around the Deployment of a component, and the Deployment.

    `live_replicas` are those of the live Deployment, None if there is none. With an autoscaler they are
    kept, except 0, at which the autoscaler is inactive.
    """
    plan = _plan(nim, image, facts, settings, legacy)
    autoscalers = _autoscaler(plan, nim)
    if autoscalers:
        least = (nim.spec.autoscaling.min_replicas if nim.spec.autoscaling else None) or 1
        plan = replace(plan, replicas=live_replicas or least)
    around = (*services(plan), *ingresses(plan), *virtual_services(plan), *autoscalers)
    return tuple(map(canonical, around)), plan.orchestrator.workloads(plan)


def _autoscaler(plan: ComponentPlan, nim: DynamoNimDeployment) -> tuple[Object, ...]:
    """The HorizontalPodAutoscaler of a component, if it is enabled."""
    autoscaling = nim.spec.autoscaling
    if autoscaling is None or not autoscaling.enabled:
        return ()
    name = names.workload_name(plan.name)
    target: Object = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return (
        autoscaler_of(
            autoscaling,
            target,
            object_metadata(plan.namespace, name, plan.labels, plan.annotations),
        ),
    )


def autoscaler_of(autoscaling: Autoscaling, target: Object, own: Object) -> Object:
    """The HorizontalPodAutoscaler that scales `target`. `own` is its metadata."""
    spec: Object = {
        "scaleTargetRef": target,
        "minReplicas": autoscaling.min_replicas,
        "maxReplicas": autoscaling.max_replicas,
        "metrics": list(autoscaling.metrics) or [_CPU],
        "behavior": autoscaling.behavior,
    }
    given = {field: value for field, value in spec.items() if value is not None}
    return object_of(HorizontalPodAutoscaler, own, spec=given)


def claims(nim: DynamoNimDeployment) -> tuple[Object, ...]:
    """The PVC that a component creates, once; it is never changed."""
    pvc = nim.spec.pvc
    if pvc is None or not pvc.create:
        return ()
    spec: Object = {
        "accessModes": [pvc.volume_access_mode],
        "resources": {"requests": {"storage": pvc.size}},
    }
    if pvc.storage_class:
        spec["storageClassName"] = pvc.storage_class
    own = {"name": claim_name(nim), "namespace": nim.metadata.namespace}
    return (canonical(object_of(PersistentVolumeClaim, own, spec=spec)),)


def _labels(nim: DynamoNimDeployment, image: DynamoNimSpec) -> dict[str, str]:
    repository, _, version = image.tag.partition(":")
    return {
        legacy_names.DEPLOYMENT: names.label_value(nim.metadata.name),
        legacy_names.REPOSITORY: names.label_value(repository),
        legacy_names.VERSION: names.label_value(version),
        legacy_names.TARGET_TYPE: "production",
        legacy_names.COMPONENT_TYPE: "api-server",
        legacy_names.CREATOR: "yatai-deployment",
    }


def _environment(nim: DynamoNimDeployment, plan: ComponentPlan) -> tuple[Object, ...]:
    """The user's variables, then the operator's that the user has not set."""
    kept = first_of_each_name((*plan.environment, *plan.main_container.get("env", ())))
    own = {
        "PORT": str(http_port(plan.environment) or HTTP_PORT),
        "YATAI_T_DEPLOYMENT_UID": nim.metadata.uid,
        "YATAI_BENTO_DEPLOYMENT_NAME": nim.metadata.name,
        "YATAI_BENTO_DEPLOYMENT_NAMESPACE": nim.metadata.namespace,
        "NATS_SERVER": plan.settings.nats_address,
        "ETCD_ENDPOINTS": plan.settings.etcd_address,
    }
    taken = {entry["name"] for entry in kept}
    added = (variable(name, text) for name, text in own.items() if text and name not in taken)
    return (*kept, *added)
