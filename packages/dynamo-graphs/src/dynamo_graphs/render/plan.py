"""The plan of a component: its spec with role, backend and orchestrator chosen.

A backend is registered in `api.backends`, which validation uses too. Planning never fails: validation has
refused what cannot be rendered, and for everything else there is a default here.
"""

from collections.abc import Mapping
from importlib import import_module

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
from dynamo_graphs.facts import Facts, registry_of_image
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
"""By the name that `framework` finds. The table is `api.backends`; a line there has a module here."""

_SHARED_MEMORY_SIZE = "8Gi"
_DISCOVERY_BACKENDS = ("kubernetes", "etcd")


def component_plan(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> ComponentPlan:
    """Every decision about a component, made once."""
    spec, namespace, graph = component.spec, component.metadata.namespace, parent_graph(component)
    switches = spec.annotations
    user_pod = _with_one_account(pruned(spec.extra_pod_spec or {}))
    detected = framework(spec)
    main = started(spec.component_type, detected.name, user_pod.pop("mainContainer", {}))
    own = component_labels(component, graph)
    every = user_labels(component) | own
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
        labels=every,
        annotations=annotations(spec),
        pod_labels=every | pod_labels(spec),
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
        pull_secrets=_pull_secrets(main.get("image", ""), switches, facts),
        service_account=_service_account(graph, discovery_backend(switches, settings), facts),
        ingress=spec.ingress,
        knows_istio=bool(settings.virtual_service_gateway) or facts.istio_served,
        epp_config=_epp_config(spec, graph),
        settings=settings,
    )


def parent_graph(component: DynamoComponentDeployment) -> str:
    """The graph that a component was made for. Empty means: a user created it.

    A component that outlives its graph keeps the graph's label, so its pods keep running unchanged.
    """
    kind, metadata = DynamoGraphDeployment.KIND, component.metadata
    for owner in metadata.owner_references:
        if owner.kind == kind.name and owner.api_version.partition("/")[0] == kind.group:
            return owner.name
    return metadata.labels.get(labels.GRAPH) or component.spec.labels.get(labels.GRAPH, "")


def discovery_backend(switches: Mapping[str, str], settings: RenderSettings) -> str:
    """How processes find each other: what the annotation says, else the operator's setting."""
    backend = switches.get(labels.DISCOVERY_BACKEND)
    return backend if backend in _DISCOVERY_BACKENDS else settings.discovery_backend


def _selector(own: Mapping[str, str], spec: ComponentSpec) -> dict[str, str]:
    """What only this component's pods have: its name, its Dynamo namespace and its type."""
    selector = {key: own[key] for key in (labels.COMPONENT, labels.DYNAMO_NAMESPACE)}
    if spec.component_type:
        selector[labels.COMPONENT_TYPE] = spec.component_type
    return selector


def _epp_config(spec: ComponentSpec, graph: str) -> ConfigKey:
    """Where an endpoint picker's configuration is: in the user's ConfigMap, else in the graph's."""
    reference = (spec.epp_config.config_map_ref if spec.epp_config else None) or {}
    if name := reference.get("name"):
        return ConfigKey(name, reference.get("key") or EPP_CONFIG_FILE)
    return ConfigKey(names.epp_config_map(graph), EPP_CONFIG_FILE)


def _mounts(spec: DynamoComponentDeploymentSpec, backend: str) -> tuple[Mount, ...]:
    """The PVCs to mount, each pair of PVC and path once, in the user's order."""
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
    """The probes beside the container; each replaces what the container says as a whole."""
    both = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return {name: pruned(probe) for name, probe in both.items() if probe is not None}


def _pull_secrets(image: str, switches: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    if not image or switches.get(labels.DISABLE_PULL_SECRETS) == "true":
        return ()
    return facts.pull_secrets.get(registry_of_image(image), ())


def _with_one_account(pod: Object) -> Object:
    """The pod spec without the deprecated name of `serviceAccountName`, which would not win over ours."""
    alias = pod.pop("serviceAccount", "")
    return {"serviceAccountName": alias, **pod} if alias else pod


def _service_account(graph: str, backend: str, facts: Facts) -> str:
    """The ServiceAccount of pods for which neither role nor user names one."""
    if graph and backend == "kubernetes":
        return names.discovery_service_account(graph)
    return facts.component_service_account or "default"
