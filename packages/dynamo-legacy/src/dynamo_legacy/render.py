"""Render the objects of a DynamoNimDeployment, with the renderer of today's components.

The plan for that renderer contains the differences: labels, ports of the Service, variables that identify a
process, and defaults of pods.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from dynamo_legacy import names as legacy_names
from dynamo_legacy.api import Autoscaling, DynamoDeployment, DynamoNimDeployment, DynamoNimSpec
from dynamo_legacy.names import (
    GRAPH_CONFIG,
    GRAPH_CONFIG_KEY,
    GraphConfigMap,
    HorizontalPodAutoscaler,
    component_name,
    default_dynamo_namespace,
    nim_name,
    object_of,
)
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.translate import HTTP_PORT, as_component, claim_name, first_of_each_name, http_port
from dynamo_operator import labels as todays
from dynamo_operator import names
from dynamo_operator.component.exposure import exposing_objects
from dynamo_operator.component.objects import canonical, object_metadata, variable
from dynamo_operator.component.plan import Backend, ComponentPlan, Role
from dynamo_operator.component.render import component_plan, services
from dynamo_operator.documents import VALUES_LIMIT, documents
from dynamo_operator.names import LABEL_LIMIT
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, NamespaceDefaults
from dynamo_operator.shared.problems import MOST_REPLICAS
from kube_runtime.errors import ConfigError, ConfigErrors
from kube_runtime.types.kinds import Deployment, PersistentVolumeClaim
from kube_runtime.types.meta import Key, Kind, Object

T = TypeVar("T")

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


def _plan(
    nim: DynamoNimDeployment,
    image: DynamoNimSpec,
    facts: Facts,
    settings: RenderSettings,
    legacy: LegacySettings,
) -> ComponentPlan:
    component = as_component(nim, image, settings, legacy)
    plan = component_plan(component, facts, settings)
    defaults = facts.running_defaults.get(nim.metadata.name, nim_namespace_defaults(facts))
    own = _labels(nim, image)
    users = {key: text for key, text in nim.spec.labels.items() if key not in _OURS}
    extra = nim.spec.extra_pod_metadata
    extra_labels = {key: text for key, text in (extra.labels if extra else {}).items() if key not in _OURS}
    tagged = {key: own[key] for key in (legacy_names.REPOSITORY, legacy_names.VERSION)}
    environment = list(_environment(nim, plan))
    fixed = {todays.COMPONENT: names.label_value(nim.metadata.name), **own}
    return replace(
        plan,
        role=_ROLE,
        backend=Backend(container=lambda main, _plan: {**main, "env": environment}),
        selector={legacy_names.DEPLOYMENT: own[legacy_names.DEPLOYMENT]},
        workload_label=legacy_names.SELECTOR,
        labels=users | fixed,
        annotations=tagged | plan.annotations,
        pod_labels=users | fixed | extra_labels,
        pod_annotations=tagged | plan.pod_annotations,
        is_discovered_by_kubernetes=False,
        namespace_defaults=defaults,
        service_account=defaults.service_account_name or "default",
    )


def nim_namespace_defaults(facts: Facts) -> NamespaceDefaults:
    """Return what new pods of a component get from their namespace now: no pull secrets are looked up."""
    return NamespaceDefaults(service_account_name=facts.component_service_account)


def nim_objects(
    nim: DynamoNimDeployment,
    image: DynamoNimSpec,
    facts: Facts,
    settings: RenderSettings,
    legacy: LegacySettings,
    live_replicas: int | None = None,
) -> tuple[Sequence[Object], Iterable[Object]]:
    """Render the objects around the Deployment of a component, and the Deployment.

    `live_replicas` are those of the live Deployment, None if there is none. With an autoscaler they are
    kept, except 0, at which the autoscaler is inactive.
    """
    plan = _plan(nim, image, facts, settings, legacy)
    metadata = object_metadata(plan.namespace, names.workload_name(plan.name), plan.labels, plan.annotations)
    autoscalers = autoscaler_of(nim.spec.autoscaling, Deployment.KIND, metadata)
    if autoscalers:
        least = (nim.spec.autoscaling.min_replicas if nim.spec.autoscaling else None) or 1
        plan = replace(plan, replicas=live_replicas or least)
    around = (*services(plan), *exposing_objects(plan), *autoscalers)
    return tuple(map(canonical, around)), plan.orchestrator.workloads(plan)


def autoscaler_of(autoscaling: Autoscaling | None, kind: Kind, own: Object) -> tuple[Object, ...]:
    """The HorizontalPodAutoscaler of the object of that kind and its name; `own` is its metadata."""
    if autoscaling is None or not autoscaling.enabled:
        return ()
    spec: Object = {
        "scaleTargetRef": {"apiVersion": kind.api_version, "kind": kind.name, "name": own["name"]},
        "minReplicas": autoscaling.min_replicas,
        "maxReplicas": autoscaling.max_replicas,
        "metrics": list(autoscaling.metrics) or [_CPU],
        "behavior": autoscaling.behavior,
    }
    given = {field: value for field, value in spec.items() if value is not None}
    return (object_of(HorizontalPodAutoscaler, own, spec=given),)


def claims(nim: DynamoNimDeployment) -> tuple[Object, ...]:
    """The PVC that a component creates, once; it is never changed."""
    pvc = nim.spec.pvc
    if pvc is None or not pvc.create:
        return ()
    spec: Object = {"accessModes": [pvc.volume_access_mode], "resources": {"requests": {"storage": pvc.size}}}
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
    """The user's variables in their order, as one may refer to an earlier one, then the operator's others."""
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


class GraphConfigError(ValueError):
    """The configuration is invalid; the message has path and cause."""


MOST_BYTES = 1024 * 1024
"""Most characters of the text, the limit of a ConfigMap."""
MOST_SERVICES = 250
"""Most services of a graph: each becomes an object with a workload."""


class GraphService(msgspec.Struct, frozen=True, kw_only=True):
    """One service of a graph.

    `is_dynamo`: it is served over the Dynamo runtime, as `dynamo_name` in `dynamo_namespace`; both may be "".
    `resources` and `autoscaling` are as a component has them. `workers` are its replicas, unless an override
    sets them.
    """

    name: str
    dependencies: tuple[str, ...] = ()
    is_dynamo: bool = False
    dynamo_namespace: str = ""
    dynamo_name: str = ""
    resources: Object = {}
    autoscaling: Object | None = None
    workers: int | None = None


class GraphConfig(msgspec.Struct, frozen=True):
    """A graph: the class to start, the service that is exposed, and all services in order."""

    service: str = ""
    entry_service: str = ""
    services: tuple[GraphService, ...] = ()


# Unknown fields are ignored; known ones must have the right type.
def parse_graph_config(text: str) -> GraphConfig:
    """Parse a configuration. Raises: GraphConfigError if it is invalid; the message has path and cause."""
    if len(text) > MOST_BYTES:
        raise GraphConfigError(f"{GRAPH_CONFIG_KEY}: too large ({MOST_BYTES} characters at most)")
    try:
        loaded = documents(GRAPH_CONFIG_KEY, text, VALUES_LIMIT)
    except ConfigError as error:
        raise GraphConfigError(str(error)) from error
    except ConfigErrors as group:
        raise GraphConfigError("; ".join(map(str, group.exceptions[:3]))) from group
    if len(loaded) != 1:
        raise GraphConfigError(f"{GRAPH_CONFIG_KEY}: expected one document, found {len(loaded)}")
    root = _checked(loaded[0].value, dict, "the document")
    entries = _checked(root.get("services"), list, "services")
    if len(entries) > MOST_SERVICES:
        raise GraphConfigError(f"services: too many ({MOST_SERVICES} at most)")
    services = tuple(_service(entry, f"services[{index}]") for index, entry in enumerate(entries))
    lowered: dict[str, str] = {}
    for name in (service.name for service in services):
        if (first := lowered.setdefault(name.lower(), name)) is not name:
            message = f'services: "{first}" and "{name}" are the same name in lower case'
            raise GraphConfigError(message)
    service, entry = (_checked(root.get(name), str, name) for name in ("service", "entry_service"))
    return GraphConfig(service, entry, services)


def graph_config_map(key: Key, tag_name: str, text: str) -> Object:
    """The ConfigMap with the configuration of a tag."""
    labels = {GRAPH_CONFIG: tag_name[:LABEL_LIMIT].rstrip("-.")}
    metadata = {"name": key.name, "namespace": key.namespace, "labels": labels}
    return object_of(GraphConfigMap, metadata, data={GRAPH_CONFIG_KEY: text})


def _service(value: object, path: str) -> GraphService:
    fields = _checked(value, dict, path)
    name = _checked(fields.get("name"), str, f"{path}.name")
    if not name:
        raise GraphConfigError(f"{path}.name: missing name")
    config_path, depends = f"{path}.config", f"{path}.dependencies"
    config = _checked(fields.get("config"), dict, config_path)
    dynamo = _checked(config.get("dynamo"), dict, f"{config_path}.dynamo")
    dependencies = tuple(
        _checked(_checked(dependency, dict, f"{depends}[{index}]").get("service"), str, depends)
        for index, dependency in enumerate(_checked(fields.get("dependencies"), list, depends))
    )
    return GraphService(
        name=name,
        dependencies=dependencies,
        is_dynamo=_checked(dynamo.get("enabled") or None, bool, f"{config_path}.dynamo.enabled"),
        dynamo_namespace=_checked(dynamo.get("namespace"), str, f"{config_path}.dynamo.namespace"),
        dynamo_name=_checked(dynamo.get("name"), str, f"{config_path}.dynamo.name"),
        resources=_resources(config.get("resources"), f"{config_path}.resources"),
        autoscaling=_autoscaling(config.get("autoscaling"), f"{config_path}.autoscaling"),
        workers=_count(config.get("workers"), f"{config_path}.workers"),
    )


def _resources(value: object, path: str) -> Object:
    amounts = _checked(value, dict, path)
    custom = _checked(amounts.get("custom"), dict, f"{path}.custom")
    resources: Object = {
        name: _scalar(amounts.get(name), f"{path}.{name}") for name in ("cpu", "memory", "gpu")
    }
    resources["custom"] = {name: _scalar(amount, f"{path}.custom.{name}") for name, amount in custom.items()}
    return {name: amount for name, amount in resources.items() if amount}


def _autoscaling(value: object, path: str) -> Object | None:
    if value is None:
        return None
    fields = _checked(value, dict, path)
    names = (("minReplicas", "min_replicas"), ("maxReplicas", "max_replicas"))
    bounds = {field: _count(fields.get(name), f"{path}.{name}") for field, name in names}
    return {"enabled": True, **{field: bound for field, bound in bounds.items() if bound is not None}}


_EXPECTED = {dict: "a mapping", list: "a list", str: "a string", bool: "true or false"}


def _checked(value: object, type_: type[T], path: str) -> T:
    """The value if it has the type; for null the empty value of the type."""
    if value is None:
        return type_()
    if not isinstance(value, type_):
        raise GraphConfigError(f"{path}: expected {_EXPECTED[type_]}")
    return value


def _scalar(value: object, path: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise GraphConfigError(f'{path}: expected an amount such as "2"')
    return "" if value is None else str(value)


def _count(value: object, path: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_REPLICAS:
        raise GraphConfigError(f"{path}: expected a number of replicas, at most {MOST_REPLICAS}")
    return value


_FIXED = ("dynamoNim", "dynamoTag")
"""Fields of a component that an override cannot change."""


class MissingDependency(ValueError):
    """A service depends on one that is not in the graph."""


def components(deployment: DynamoDeployment, graph: GraphConfig) -> tuple[Object, ...]:
    """A DynamoNimDeployment for each service of the graph, in its order, without owner references.

    Raises:
        MissingDependency: a dependency is not a service of the graph.
        ValueError: the tag has no name.
    """
    addresses = {
        service.name: ("dynamo", f"{service.dynamo_name}/{_dynamo_namespace(deployment, service)}")
        if service.is_dynamo
        else ("name", service.name)
        for service in graph.services
    }
    return tuple(
        _component(deployment, service.name, _spec(deployment, graph, service, addresses))
        for service in graph.services
    )


def services_only(deployment: DynamoDeployment, tag: str) -> GraphConfig:
    """The graph of a deployment with an image and without configuration: the services in its spec.

    `tag` is the class to start; "" leaves that to the image.
    """
    services = tuple(GraphService(name=name) for name in deployment.spec.services)
    return GraphConfig(service=tag, services=services)


def unknown_services(deployment: DynamoDeployment, graph: GraphConfig) -> tuple[str, ...]:
    """The overridden services that are not in the graph, sorted."""
    return tuple(sorted(deployment.spec.services.keys() - {service.name for service in graph.services}))


def merge_patched(value: object, patch: object) -> Any:
    """Apply a JSON merge patch (RFC 7396), and return the result; neither argument is changed.

    Keys of the patch take precedence, also with false, 0 and ""; null removes a key.
    """
    if not isinstance(patch, Mapping):
        return patch
    merged: Object = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patched(merged.get(name), change)
    return merged


def merged_variables(common: Iterable[Object], specific: Iterable[Object]) -> list[Object]:
    """Merge variables by name: the common ones, overridden in place by those of the service, then its others.

    The order is kept, since a variable may refer to earlier ones.
    """
    own = {entry.get("name"): entry for entry in specific}
    both = {entry.get("name"): own.get(entry.get("name"), entry) for entry in common} | own
    return list(both.values())


def _component(deployment: DynamoDeployment, service: str, spec: Object) -> Object:
    override = deployment.spec.services.get(service) or {}
    own = {name: value for name, value in override.items() if name not in _FIXED}
    merged: Object = merge_patched(spec, own)
    if deployment.spec.envs:
        merged["envs"] = merged_variables(deployment.spec.envs, merged.get("envs", ()))
    name = component_name(deployment.metadata.name, service)
    metadata = {"name": name, "namespace": deployment.metadata.namespace}
    return object_of(DynamoNimDeployment, metadata, spec=merged)


def _spec(
    deployment: DynamoDeployment,
    graph: GraphConfig,
    service: GraphService,
    addresses: Mapping[str, tuple[str, str]],
) -> Object:
    spec: Object = {
        "dynamoNim": nim_name(deployment.spec.dynamo_nim),
        "dynamoTag": graph.service,
        "serviceName": service.name,
    }
    if service.is_dynamo:
        spec["dynamoNamespace"] = _dynamo_namespace(deployment, service)
    elif service.name == graph.entry_service:
        spec["ingress"] = {"enabled": True}
    if service.resources:
        spec["resources"] = {"requests": service.resources, "limits": service.resources}
    if service.autoscaling is not None:
        spec["autoscaling"] = service.autoscaling
    elif service.workers is not None:
        spec["replicas"] = service.workers
    for name in service.dependencies:
        if name not in addresses:
            raise MissingDependency(f"dependency {name} not found (service {service.name} names it)")
        key, value = addresses[name]
        address = {"deploymentSelectorKey": key, "deploymentSelectorValue": value}
        spec.setdefault("externalServices", {})[name] = address
    return spec


def _dynamo_namespace(deployment: DynamoDeployment, service: GraphService) -> str:
    return service.dynamo_namespace or default_dynamo_namespace(deployment.metadata.name)
