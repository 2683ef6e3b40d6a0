"""The plan of a component: its spec made tight, with role, backend and orchestrator chosen.

Three tables at the top are the only places where a new role, backend or orchestrator is entered.
The hard part is to be total: validation has refused what cannot be rendered, and for everything
else there is a default here.
"""

from collections.abc import Mapping

from dynamo_operator.api import labels, names
from dynamo_operator.api.component import (
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    SharedMemory,
)
from dynamo_operator.api.framework import NOOP, cache_path, framework
from dynamo_operator.facts import Facts, registry_of_image
from dynamo_operator.kube.kind import Object
from dynamo_operator.render.backends import noop, sglang, trtllm, vllm
from dynamo_operator.render.components import base, frontend, planner, worker
from dynamo_operator.render.merge import pruned
from dynamo_operator.render.orchestrators import deployment
from dynamo_operator.render.resources import resources
from dynamo_operator.render.seams import Backend, ComponentPlan, Mount, Orchestrator, Role
from dynamo_operator.settings import RenderSettings

ROLES: dict[str, Role] = {
    "frontend": frontend,
    "worker": worker,
    "prefill": worker,
    "decode": worker,
    "planner": planner,
}
"""By `componentType`; every other type is `base`."""

BACKENDS: dict[str, Backend] = {NOOP: noop, "sglang": sglang, "trtllm": trtllm, "vllm": vllm}
"""By the name that `framework` finds."""

ORCHESTRATORS: dict[str, Orchestrator] = {"deployment": deployment}
"""By the name that `orchestrator` chooses."""

_SHARED_MEMORY_SIZE = "8Gi"
_DISCOVERY_BACKENDS = ("kubernetes", "etcd")


def component_plan(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> ComponentPlan:
    """Every decision about a component, made once."""
    spec, namespace, graph = component.spec, component.metadata.namespace, parent_graph(component)
    switches = spec.annotations
    user_pod = pruned(spec.extra_pod_spec or {})
    main = user_pod.pop("mainContainer", {})
    found = framework(spec)
    system = _system_labels(component, graph)
    base_labels = _base_labels(component) | system
    return ComponentPlan(
        namespace=namespace,
        name=component.metadata.name,
        component=system[labels.COMPONENT],
        graph=graph,
        dynamo_namespace=system[labels.DYNAMO_NAMESPACE],
        component_type=spec.component_type or "",
        sub_component_type=spec.sub_component_type or "",
        model=spec.model_ref.name if spec.model_ref else "",
        replicas=1 if spec.replicas is None else spec.replicas,
        nodes=spec.multinode.node_count if spec.multinode else 1,
        role=ROLES.get(spec.component_type or "", base),
        backend=BACKENDS[found.name],
        orchestrator=ORCHESTRATORS["deployment"],
        labels=base_labels,
        annotations=_base_annotations(spec),
        pod_labels=base_labels | _pod_labels(spec),
        pod_annotations=_pod_annotations(spec),
        switches=switches,
        discovery_backend=discovery_backend(switches, settings),
        environment=tuple(pruned(entry) for entry in spec.envs),
        environment_secret=spec.env_from_secret or "",
        resources=resources(spec.resources),
        mounts=_mounts(spec, found.name),
        shared_memory_size=_shared_memory_size(spec.shared_memory),
        main_container=main,
        pod=user_pod,
        probes=_service_probes(spec),
        pull_secrets=_pull_secrets(main.get("image", ""), switches, facts),
        service_account=_service_account(graph, discovery_backend(switches, settings), facts),
        ingress=spec.ingress,
        settings=settings,
    )


def parent_graph(component: DynamoComponentDeployment) -> str:
    """The graph that a component was made for. Empty means: somebody made it by hand."""
    owners = component.metadata.owner_references
    return next((owner.name for owner in owners if owner.kind == "DynamoGraphDeployment"), "")


def discovery_backend(annotations: Mapping[str, str], settings: RenderSettings) -> str:
    """How processes find each other: the annotation's word if it is one, else the operator's
    setting.
    """
    wanted = annotations.get(labels.DISCOVERY_BACKEND)
    return wanted if wanted in _DISCOVERY_BACKENDS else settings.discovery_backend


def component_dynamo_namespace(component: DynamoComponentDeployment, graph: str) -> str:
    """The Dynamo namespace of a component; without a graph it is what the spec says, else its own
    name.
    """
    if component.spec.global_dynamo_namespace:
        return names.GLOBAL_DYNAMO_NAMESPACE
    if graph:
        return names.dynamo_namespace(component.metadata.namespace, graph)
    return names.label_value(component.spec.dynamo_namespace or component.metadata.name)


def _system_labels(component: DynamoComponentDeployment, graph: str) -> dict[str, str]:
    spec = component.spec
    found = {
        labels.COMPONENT: names.label_value(spec.service_name or component.metadata.name),
        labels.DYNAMO_NAMESPACE: component_dynamo_namespace(component, graph),
    }
    if graph:
        found[labels.GRAPH] = names.label_value(graph)
    if spec.model_ref and spec.model_ref.name:
        found[labels.BASE_MODEL_HASH] = names.model_hash(spec.model_ref.name)
    return found


def _base_labels(component: DynamoComponentDeployment) -> dict[str, str]:
    both = component.spec.labels | component.metadata.labels
    return {key: value for key, value in both.items() if key not in labels.SELECTING}


def _base_annotations(spec: ComponentSpec) -> dict[str, str]:
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    found = spec.annotations | extra
    if spec.model_ref and spec.model_ref.name:
        found[labels.BASE_MODEL] = spec.model_ref.name
    return {key: value for key, value in found.items() if key not in labels.BOOKKEEPING}


def _pod_labels(spec: ComponentSpec) -> dict[str, str]:
    found: dict[str, str] = {}
    if spec.annotations.get(labels.ENABLE_METRICS) != "false":
        found[labels.METRICS_ENABLED] = "true"
    extra = spec.extra_pod_metadata.labels if spec.extra_pod_metadata else {}
    found |= {key: value for key, value in extra.items() if key not in labels.SELECTING}
    if spec.component_type:
        found[labels.COMPONENT_TYPE] = spec.component_type
    if spec.sub_component_type:
        found[labels.SUB_COMPONENT_TYPE] = spec.sub_component_type
    return found


def _pod_annotations(spec: ComponentSpec) -> dict[str, str]:
    extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
    quiet = labels.SWITCHES | labels.BOOKKEEPING
    found = {key: value for key, value in spec.annotations.items() if key not in quiet}
    found |= {key: value for key, value in extra.items() if key not in labels.BOOKKEEPING}
    if restart := spec.annotations.get(labels.RESTART_AT):
        found[labels.RESTART_AT] = restart
    return found


def _mounts(spec: DynamoComponentDeploymentSpec, backend: str) -> tuple[Mount, ...]:
    """The claims to mount, each pair of claim and path once, in the user's order."""
    found: dict[tuple[str, str], Mount] = {}
    for mount in spec.volume_mounts:
        is_cache = mount.use_as_compilation_cache
        path = cache_path(backend, mount.mount_point, is_cache=is_cache)
        known = found.get((mount.name, path))
        found[mount.name, path] = Mount(
            mount.name, path, is_cache or bool(known and known.is_cache)
        )
    return tuple(found.values())


def _shared_memory_size(wanted: SharedMemory | None) -> str:
    if wanted is None:
        return _SHARED_MEMORY_SIZE
    if wanted.disabled:
        return ""
    return str(wanted.size) if wanted.size else _SHARED_MEMORY_SIZE


def _service_probes(spec: ComponentSpec) -> dict[str, Object]:
    """The probes beside the container; each replaces what the container says as a whole."""
    both = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return {name: pruned(probe) for name, probe in both.items() if probe is not None}


def _pull_secrets(image: str, switches: Mapping[str, str], facts: Facts) -> tuple[str, ...]:
    if not image or switches.get(labels.DISABLE_PULL_SECRETS) == "true":
        return ()
    return facts.pull_secrets.get(registry_of_image(image), ())


def _service_account(graph: str, backend: str, facts: Facts) -> str:
    """The account of pods for which neither role nor user names one."""
    if graph and backend == "kubernetes":
        return names.discovery_service_account(graph)
    return facts.component_service_account or "default"
