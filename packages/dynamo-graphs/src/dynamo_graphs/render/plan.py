"""The plan of a component: its spec with role, backend and orchestrator chosen.

Planning never fails: validation has rejected what cannot be rendered, and everything else has a default.
"""

from collections.abc import Mapping
from importlib import import_module

from msgspec.structs import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.backends import NAMES, NOOP
from dynamo_graphs.api.component import (
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    SharedMemory,
)
from dynamo_graphs.api.devices import gpus
from dynamo_graphs.api.entry_point import started
from dynamo_graphs.api.framework import cache_path, framework
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.facts import Facts, NamespaceDefaults, registry_of_image
from dynamo_graphs.render.interfaces import Backend, ComponentPlan, ConfigKey, Mount
from dynamo_graphs.render.merge import pruned, resources
from dynamo_graphs.render.metadata import (
    annotations,
    component_labels,
    pod_annotations,
    pod_labels,
    user_labels,
)
from dynamo_graphs.render.orchestrators import DEPLOYMENT, LEADER_WORKER_SETS
from dynamo_graphs.render.roles import DEFAULT_ROLE, EPP_CONFIG_FILE, ROLES
from dynamo_graphs.settings import RenderSettings
from kube_runtime.kind import Object

BACKENDS: dict[str, Backend] = {
    NOOP: Backend(),
    **{name: import_module(f"dynamo_graphs.render.backends.{name}").BACKEND for name in NAMES},
}
"""By framework. Each line of `api.backends` has a module here."""

_SHARED_MEMORY_SIZE = "8Gi"
_DISCOVERY_BACKENDS = ("kubernetes", "etcd")


def component_plan(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> ComponentPlan:
    """Resolve the spec of a component."""
    spec, namespace, graph = component.spec, component.metadata.namespace, parent_graph(component)
    switches = spec.annotations
    user_pod = _with_one_account(pruned(spec.extra_pod_spec or {}))
    detected = framework(spec)
    main = started(spec.component_type, detected.name, user_pod.pop("mainContainer", {}))
    own = component_labels(component, graph)
    defaults = _kept_defaults(component, facts, settings)
    all_labels = user_labels(component) | own
    return ComponentPlan(
        namespace=namespace,
        name=component.metadata.name,
        graph=graph,
        dynamo_namespace=own[labels.DYNAMO_NAMESPACE],
        component_type=spec.component_type or "",
        replicas=spec.desired_replicas,
        nodes=spec.nodes,
        role=ROLES.get(spec.component_type or "", DEFAULT_ROLE),
        backend=BACKENDS[detected.name],
        orchestrator=LEADER_WORKER_SETS if spec.nodes > 1 else DEPLOYMENT,
        selector=_selector(own, spec),
        workload_label=labels.SELECTOR,
        labels=all_labels,
        annotations=annotations(spec),
        pod_labels=all_labels | pod_labels(spec),
        pod_annotations=pod_annotations(spec),
        switches=switches,
        discovery_backend=discovery_backend(switches, settings),
        environment=tuple(pruned(entry) for entry in spec.envs),
        environment_secret=spec.env_from_secret or "",
        resources=resources(spec.resources),
        gpus=gpus(spec),
        mounts=_mounts(spec, detected.name),
        shared_memory_size=_shared_memory_size(spec.shared_memory),
        main_container=main,
        pod=user_pod,
        probes=_service_probes(spec),
        namespace_defaults=defaults,
        service_account=_service_account(component, settings, defaults),
        ingress=spec.ingress,
        knows_istio=bool(settings.virtual_service_gateway) or facts.istio_served,
        epp_config=_epp_config(spec, graph),
        settings=settings,
    )


def parent_graph(component: DynamoComponentDeployment) -> str:
    """The name of a component's graph; "" for one that a user created.

    A component that outlives its graph keeps the graph's label, so that its pods run unchanged.
    """
    kind, metadata = DynamoGraphDeployment.KIND, component.metadata
    for owner in metadata.owner_references:
        if owner.kind == kind.name and owner.api_version.partition("/")[0] == kind.group:
            return owner.name
    return metadata.labels.get(labels.GRAPH) or component.spec.labels.get(labels.GRAPH, "")


def discovery_backend(switches: Mapping[str, str], settings: RenderSettings) -> str:
    """The discovery backend: that of the annotation, else that of the settings."""
    backend = switches.get(labels.DISCOVERY_BACKEND)
    return backend if backend in _DISCOVERY_BACKENDS else settings.discovery_backend


def _selector(own: Mapping[str, str], spec: ComponentSpec) -> dict[str, str]:
    """Labels that only this component's pods have: its name, its Dynamo namespace and its type."""
    selector = {key: own[key] for key in (labels.COMPONENT, labels.DYNAMO_NAMESPACE)}
    if spec.component_type:
        selector[labels.COMPONENT_TYPE] = spec.component_type
    return selector


def _epp_config(spec: ComponentSpec, graph: str) -> ConfigKey:
    """The ConfigMap key with the endpoint picker's configuration: the user's, else the graph's."""
    reference = (spec.epp_config.config_map_ref if spec.epp_config else None) or {}
    if name := reference.get("name"):
        return ConfigKey(name, reference.get("key") or EPP_CONFIG_FILE)
    return ConfigKey(names.epp_config_map(graph), EPP_CONFIG_FILE)


def _mounts(spec: DynamoComponentDeploymentSpec, backend: str) -> tuple[Mount, ...]:
    """The PVCs to mount, without duplicates of PVC and path, in the order of the spec."""
    mounts: dict[tuple[str, str], Mount] = {}
    for mount in spec.volume_mounts:
        is_cache = mount.use_as_compilation_cache
        path = cache_path(backend, mount.mount_point, is_cache=is_cache)
        earlier = mounts.get((mount.name, path))
        mounts[mount.name, path] = Mount(
            mount.name, path, is_cache or bool(earlier and earlier.is_cache)
        )
    return tuple(mounts.values())


def _shared_memory_size(memory: SharedMemory | None) -> str:
    if memory is None:
        return _SHARED_MEMORY_SIZE
    if memory.disabled:
        return ""
    return str(memory.size) if memory.size else _SHARED_MEMORY_SIZE


def _service_probes(spec: ComponentSpec) -> dict[str, Object]:
    """The probes of the component, each of which replaces that of the container."""
    both = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return {name: pruned(probe) for name, probe in both.items() if probe is not None}


def namespace_defaults(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> NamespaceDefaults:
    """What new pods of a component would get from their namespace now."""
    spec = component.spec
    account = "" if _is_discovered(component, settings) else facts.component_service_account
    if spec.annotations.get(labels.DISABLE_PULL_SECRETS) == "true":
        return NamespaceDefaults(None, account)
    main: Object = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    image: str = main.get("image") or ""
    secrets = facts.pull_secrets.get(registry_of_image(image), ()) if image else ()
    return NamespaceDefaults(tuple(secrets), account)


def _kept_defaults(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> NamespaceDefaults:
    """The defaults that running pods keep, else the present ones. The user's switch counts at once."""
    now = namespace_defaults(component, facts, settings)
    kept = facts.running_defaults.get(component.metadata.name, now)
    if now.image_pull_secrets is None:
        return replace(kept, image_pull_secrets=None)
    return kept


def _with_one_account(pod: Object) -> Object:
    """Move the deprecated `serviceAccount` to `serviceAccountName`, so that it overrides the default."""
    alias = pod.pop("serviceAccount", "")
    return {"serviceAccountName": alias, **pod} if alias else pod


def _is_discovered(component: DynamoComponentDeployment, settings: RenderSettings) -> bool:
    """Whether the pods use the ServiceAccount of their graph's discovery."""
    backend = discovery_backend(component.spec.annotations, settings)
    return bool(parent_graph(component)) and backend == "kubernetes"


def _service_account(
    component: DynamoComponentDeployment, settings: RenderSettings, defaults: NamespaceDefaults
) -> str:
    """The default ServiceAccount, unless role or user name one."""
    if _is_discovered(component, settings):
        return names.discovery_service_account(parent_graph(component))
    return defaults.service_account_name or "default"
