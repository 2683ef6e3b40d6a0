"""The objects of a component: workload, Services, Ingress. Pure: same input, same bytes."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from importlib import import_module

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component import pod
from dynamo_operator.component.api import (
    FRAMEWORKS,
    NOOP,
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    SharedMemory,
)
from dynamo_operator.component.exposure import exposing_objects
from dynamo_operator.component.framework import cache_path, framework, gpus, started
from dynamo_operator.component.launch import Fragment, GroupNode, Hosts
from dynamo_operator.component.objects import (
    annotations,
    canonical,
    component_labels,
    discovery_backend,
    is_adopted,
    object_metadata,
    parent_graph,
    pod_annotations,
    pod_labels,
    pruned,
    resources,
    selected_type,
    user_labels,
)
from dynamo_operator.component.plan import Backend, ComponentPlan, Mount, Orchestrator, Rendered
from dynamo_operator.component.wait_for_leader import wait_config_maps
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import (
    Facts,
    LeaderWorkerSet,
    NamespaceDefaults,
    PodGroup,
    registry_of_image,
)
from kube_runtime.types.kinds import Deployment, PodDisruptionBudget, Service
from kube_runtime.types.meta import Object, Resource

_DEFAULT_BOUND = "25%"
_SCHEDULER = "volcano"
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def _deployments(plan: ComponentPlan) -> tuple[Object, ...]:
    serving = _deployment(plan, names.workload_name(plan.name), plan.replicas, is_debug=False)
    if not plan.is_on(labels.STEALING_DEBUG_MODE):
        return (canonical(serving),)
    debug = _deployment(plan, names.debug_workload_name(plan.name), 1, is_debug=True)
    return (canonical(serving), canonical(debug))


def _deployment(plan: ComponentPlan, name: str, replicas: int, *, is_debug: bool) -> Object:
    annotations = plan.annotations | pod.namespace_defaults_record(plan)
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": {plan.workload_label: name}},
        "strategy": _strategy(plan),
        "template": pod.pod_template(plan, name, is_debug=is_debug),
    }
    metadata = object_metadata(plan.namespace, name, plan.labels, annotations)
    return Deployment.KIND.manifest(metadata, spec=spec)


def _strategy(plan: ComponentPlan) -> Object:
    if plan.switches.get(labels.STRATEGY) == "Recreate":
        return {"type": "Recreate"}
    bounds = {
        "maxSurge": _bound(plan.annotations.get(labels.MAX_SURGE)),
        "maxUnavailable": _bound(plan.annotations.get(labels.MAX_UNAVAILABLE)),
    }
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


def _bound(text: str | None) -> object:
    if not text:
        return _DEFAULT_BOUND
    return int(text) if _INTEGER.fullmatch(text) else text


DEPLOYMENT = Orchestrator(_deployments, serving_labels={})


# Each replica on several nodes is a LeaderWorkerSet of its own, which Volcano schedules as a whole.
# So the operator decides which replicas a scale-down removes, and every group has one PodGroup of
# its own name.
# All groups share the pod templates, which are nearly all of their size.
def _groups(plan: ComponentPlan) -> Iterator[Object]:
    both, digest = _templates(plan, {"schedulerName": _SCHEDULER})
    # In order as by `canonical`, but the texts are shared: there may be a thousand groups.
    own_annotations = _group_annotations(plan)
    for index, name in enumerate(names.group_name(plan.name, n) for n in range(plan.replicas)):
        own, place = {labels.INSTANCE: str(index)}, {labels.GROUP_NAME: name}
        identity: Object = {"name": name, "namespace": plan.namespace}
        pod_group = PodGroup.KIND.manifest({"labels": own, **identity}, spec={"minMember": plan.nodes})
        metadata = {"labels": dict(sorted((plan.labels | own).items())), **identity}
        if own_annotations:
            metadata = {"annotations": own_annotations, **metadata}
        template = {
            "leaderTemplate": _marked(both["leader"], own, place | {labels.GROUP_HASH: digest}),
            "size": plan.nodes,
            "workerTemplate": _marked(both["worker"], own, place),
        }
        spec = {"leaderWorkerTemplate": template, "replicas": 1, "startupPolicy": "LeaderCreated"}
        yield from (pod_group, LeaderWorkerSet.KIND.manifest(metadata, spec=spec))


# As the Go operator of the 1.x line has created it. To divide it would restart pods.
def _one_set(plan: ComponentPlan) -> Iterator[Object]:
    """The LeaderWorkerSet of an adopted component, whose replicas are the groups."""
    both, digest = _templates(plan, {})
    metadata: Object = {
        "labels": dict(sorted((plan.labels | {labels.INSTANCE: "0"}).items())),  # the watch selects by it
        "name": names.group_name(plan.name, 0),
        "namespace": plan.namespace,
    }
    if annotations := _group_annotations(plan):
        metadata["annotations"] = annotations
    template = {
        "leaderTemplate": _marked(both["leader"], {}, {labels.GROUP_HASH: digest}),
        "size": plan.nodes,
        "workerTemplate": both["worker"],
    }
    spec = {"leaderWorkerTemplate": template, "replicas": plan.replicas, "startupPolicy": "LeaderCreated"}
    yield canonical(LeaderWorkerSet.KIND.manifest(metadata, spec=spec))


def _templates(plan: ComponentPlan, more: Object) -> tuple[Object, str]:
    """The pod templates of a group, with `more` in their specs, and their digest."""
    group_hosts = hosts(plan.nodes)
    leader = _template(plan, GroupNode(is_leader=True, hosts=group_hosts), more)
    worker = _template(plan, GroupNode(is_leader=False, hosts=group_hosts), more)
    both = canonical({"size": plan.nodes, "leader": leader, "worker": worker})
    return both, names.short_hash(msgspec.json.encode(both).decode())


def _group_annotations(plan: ComponentPlan) -> dict[str, str]:
    return dict(sorted((plan.annotations | pod.namespace_defaults_record(plan)).items()))


def is_surplus_group(component: DynamoComponentDeployment, live: Resource) -> bool:
    """Whether an object is of a group with a number over the desired one: a scale-down removes it."""
    number = live.metadata.labels.get(labels.INSTANCE, "")
    is_group = isinstance(live, LeaderWorkerSet | PodGroup) and component.spec.nodes > 1
    return is_group and number.isdecimal() and int(number) >= component.spec.desired_replicas


def hosts(nodes: int) -> Hosts:
    """How the pods of a group address each other, by variables that LeaderWorkerSet sets.

    The host name of a worker is the leader's with `-INDEX` appended to its first label.
    """
    leader = "LWS_LEADER_ADDRESS"
    workers = (Fragment(f"$(echo \"${leader}\" | sed 's/\\./-{index}\\./')") for index in range(1, nodes))
    return Hosts(
        leader=Fragment(f"${leader}", f"$({leader})"),
        workers=tuple(workers),
        worker_rank=Fragment("$(LWS_WORKER_INDEX)"),
        rank_term="LWS_WORKER_INDEX",
        names_come_late=True,
    )


def _template(plan: ComponentPlan, node: GroupNode, more: Object) -> Object:
    template = pod.pod_template(plan, plan.name, node=node)
    users = {k: v for k, v in template["metadata"]["labels"].items() if k != labels.SELECTOR}
    role = {labels.ROLE: "leader" if node.is_leader else "worker"}
    return {
        "metadata": {"labels": users | plan.labels | role, "annotations": plan.pod_annotations},
        "spec": template["spec"] | more,
    }


def _marked(template: Object, own: dict[str, str], annotations: dict[str, str]) -> Object:
    common = template["metadata"]
    both = {
        "annotations": dict(sorted((common["annotations"] | annotations).items())),
        "labels": dict(sorted((common["labels"] | own).items())),
    }
    return {"metadata": both, "spec": template["spec"]}


LEADER_WORKER_SETS = Orchestrator(
    lambda plan: Rendered(partial(_groups, plan)), serving_labels={labels.ROLE: "leader"}
)
"""Only leaders receive requests, which they serve together with their workers."""
ONE_LEADER_WORKER_SET = Orchestrator(
    lambda plan: Rendered(partial(_one_set, plan)), serving_labels={labels.ROLE: "leader"}
)


BACKENDS: dict[str, Backend] = {
    NOOP: Backend(),
    **{name: import_module(f"dynamo_operator.component.backends.{name}").BACKEND for name in FRAMEWORKS},
}
"""By framework. Each of `component.api.FRAMEWORKS` has a module in `backends`."""

_SHARED_MEMORY_SIZE = "8Gi"


def component_plan(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> ComponentPlan:
    """Resolve the spec of a component."""
    spec, namespace, graph = component.spec, component.metadata.namespace, parent_graph(component)
    memory = spec.shared_memory or SharedMemory()
    user_pod: Object = pruned(spec.extra_pod_spec or {})
    if alias := user_pod.pop("serviceAccount", ""):  # the deprecated name, which overrides our default, too
        user_pod.setdefault("serviceAccountName", alias)
    detected = framework(spec)
    main = started(spec.component_type, detected.name, user_pod.pop("mainContainer", {}))
    own = component_labels(component, graph)
    now = namespace_defaults(component, facts, settings)
    defaults = facts.running_defaults.get(component.metadata.name, now)
    if now.image_pull_secrets is None:  # the user's switch counts at once
        defaults = replace(defaults, image_pull_secrets=None)
    all_labels = user_labels(component) | own
    selector = {key: own[key] for key in (labels.COMPONENT, labels.DYNAMO_NAMESPACE)}
    is_discovered = discovery_backend(spec.annotations, settings) == "kubernetes"
    probes = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    account = defaults.service_account_name or "default"
    if graph and is_discovered:
        account = names.discovery_account(graph)
    return ComponentPlan(
        spec=spec,
        namespace=namespace,
        name=component.metadata.name,
        graph=graph,
        dynamo_namespace=own[labels.DYNAMO_NAMESPACE],
        component_type=spec.component_type or "",
        replicas=spec.desired_replicas,
        nodes=spec.nodes,
        role=pod.ROLES.get(spec.component_type or "", pod.DEFAULT_ROLE),
        backend=BACKENDS[detected.name],
        orchestrator=_orchestrator(component),
        selector=selector | selected_type(spec),
        workload_label=labels.SELECTOR,
        labels=all_labels,
        annotations=annotations(spec),
        pod_labels=all_labels | pod_labels(spec),
        pod_annotations=pod_annotations(spec),
        switches=spec.annotations,
        is_discovered_by_kubernetes=is_discovered,
        environment=tuple(pruned(entry) for entry in spec.envs),
        resources=resources(spec.resources),
        gpus=gpus(spec),
        mounts=_mounts(spec, detected.name),
        shared_memory_size="" if memory.disabled else str(memory.size or _SHARED_MEMORY_SIZE),
        main_container=main,
        pod=user_pod,
        probes={name: pruned(probe) for name, probe in probes.items() if probe is not None},
        namespace_defaults=defaults,
        service_account=account,
        knows_istio=bool(settings.virtual_service_gateway) or facts.istio_served,
        settings=settings,
    )


def _orchestrator(component: DynamoComponentDeployment) -> Orchestrator:
    if component.spec.nodes == 1:
        return DEPLOYMENT
    return ONE_LEADER_WORKER_SET if is_adopted(component) else LEADER_WORKER_SETS


def _mounts(spec: DynamoComponentDeploymentSpec, backend: str) -> tuple[Mount, ...]:
    # Without duplicates of PVC and path.
    mounts: dict[tuple[str, str], Mount] = {}
    for mount in spec.volume_mounts:
        is_cache = mount.use_as_compilation_cache
        path = cache_path(backend, mount.mount_point, is_cache=is_cache)
        earlier = mounts.get((mount.name, path))
        mounts[mount.name, path] = Mount(mount.name, path, is_cache or bool(earlier and earlier.is_cache))
    return tuple(mounts.values())


def namespace_defaults(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> NamespaceDefaults:
    """What new pods of a component would get from their namespace now."""
    spec = component.spec
    is_discovered = discovery_backend(spec.annotations, settings) == "kubernetes"
    account = "" if is_discovered and parent_graph(component) else facts.component_service_account
    if spec.annotations.get(labels.DISABLE_PULL_SECRETS) == "true":
        return NamespaceDefaults(None, account)
    main: Object = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    image: str = main.get("image") or ""
    secrets = facts.pull_secrets.get(registry_of_image(image), ()) if image else ()
    return NamespaceDefaults(tuple(secrets), account)


def component_parts(
    component: DynamoComponentDeployment, facts: Facts, settings: RenderSettings
) -> tuple[Sequence[Object], Iterable[Object]]:
    """Return the objects that the component controls, in order of creation, without owner references.

    They are in two parts: those around the workloads, and the workloads, which are rendered when they are
    read.
    """
    plan = component_plan(component, facts, settings)
    budgets = () if plan.graph else component_disruption_budgets(component, settings)
    around = (*services(plan), *exposing_objects(plan), *budgets, *wait_config_maps(plan))
    return tuple(map(canonical, around)), plan.orchestrator.workloads(plan)


def services(plan: ComponentPlan) -> tuple[Object, ...]:
    """The component's Service; in the debug mode that steals traffic also one for each Deployment."""
    main = _service(plan, "", {})
    if not plan.is_on(labels.STEALING_DEBUG_MODE):
        return (main,)
    debug = _service(plan, "-d", {labels.TARGET_TYPE: "debug"})
    return (main, _service(plan, "-p", {}), debug)


def _service(plan: ComponentPlan, suffix: str, selector: dict[str, str]) -> Object:
    own: dict[str, str] = {}
    if plan.is_discovered_by_kubernetes:
        own[labels.DISCOVERY_BACKEND_LABEL] = "kubernetes"
        if plan.component_type != "frontend":
            own[labels.DISCOVERY_ENABLED] = "true"
    name = names.service_name(plan.name, suffix)
    serving = plan.orchestrator.serving_labels
    ports = [dict(port) for port in plan.role.service_ports]
    metadata = object_metadata(plan.namespace, name, plan.labels | own, plan.annotations)
    return Service.KIND.manifest(
        metadata, spec={"selector": plan.selector | serving | selector, "ports": ports}
    )


def model_services(namespace: str, spec: ComponentSpec) -> tuple[Object, ...]:
    """The headless Service of all pods in the namespace that serve the component's model.

    All its components own it, and none controls it. It depends on the model's name only, so rendering it is
    cheap however large the spec is.
    """
    if spec.model_ref is None or not spec.model_ref.name:
        return ()
    model = spec.model_ref.name
    port = {"name": "system", "port": pod.SYSTEM_PORT, "targetPort": pod.SYSTEM_PORT, "protocol": "TCP"}
    hashed = {labels.BASE_MODEL_HASH: names.model_hash(model)}
    own = {**hashed, labels.MANAGED_BY: labels.MANAGER}
    metadata = object_metadata(namespace, names.model_service_name(model), own, {labels.BASE_MODEL: model})
    rest = {"clusterIP": "None", "publishNotReadyAddresses": False, "selector": hashed, "ports": [port]}
    return (canonical(Service.KIND.manifest(metadata, spec=rest)),)


# A service may run in several revisions at once, each a component of its own, and a drain must spare the
# service as a whole. So in a graph the budget belongs to the graph, and its selector omits the Dynamo
# namespace. Multinode services have none, since losing any pod of a group stops the group.
def component_disruption_budgets(
    component: DynamoComponentDeployment, settings: RenderSettings
) -> tuple[Object, ...]:
    """Return the budget of a component without a graph, if it has one."""
    spec, name = component.spec, names.workload_name(component.metadata.name)
    if not (limit := budget_limit(spec, settings)):
        return ()
    every = user_labels(component) | component_labels(component, "")
    metadata = object_metadata(component.metadata.namespace, name, every, annotations(spec))
    return (budget_object(metadata, {labels.SELECTOR: name}, limit),)


def budget_limit(spec: ComponentSpec, settings: RenderSettings) -> Object:
    """The limit of the budget of a service or component; empty if it has none."""
    if spec.nodes > 1:
        return {}
    if (budget := spec.disruption_budget) is not None:
        bounds = {"minAvailable": budget.min_available, "maxUnavailable": budget.max_unavailable}
        return {name: _amount(bound) for name, bound in bounds.items() if bound is not None}
    default = settings.disruption_budget_max_unavailable
    # Only for several replicas: a budget for one pod would block every drain.
    if not default or (spec.replicas or 0) <= 1:
        return {}
    return {"maxUnavailable": _amount(default)}


def _amount(bound: int | str) -> int | str:
    # The API server reads a text as a percentage.
    return int(bound) if isinstance(bound, str) and bound.isdecimal() else bound


def budget_object(metadata: Object, selected: dict[str, str], limit: Object) -> Object:
    """The PodDisruptionBudget of the pods with these labels."""
    return PodDisruptionBudget.KIND.manifest(
        metadata,
        spec={
            **limit,
            "selector": {"matchLabels": selected},
            # A pod that is not ready serves no requests; it must not block a drain.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )
