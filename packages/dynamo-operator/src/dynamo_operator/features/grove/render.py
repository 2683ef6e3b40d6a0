"""The objects of a graph on Grove: Services, Ingresses or VirtualServices, and one PodCliqueSet.

There are no components, so this module makes the plans that a component's controller would make, with two
differences: the graph alone chooses the discovery backend, and there are no debug containers. In the set each
service is a clique, or a scaling group of two cliques.

Grove rejects some changes of an existing set. So a clique keeps the minimum of pods of the live template, and
sizes are changed on the live cliques only, never in the template. An existing set keeps its topology
constraints. The order of cliques matters too: an older Grove replaces all pods when it changes, and its
webhook rejects the change if cliques start in order.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.exposure import exposing_objects
from dynamo_operator.component.launch import Fragment, GroupNode, Hosts
from dynamo_operator.component.namespace_defaults import ComponentUnit
from dynamo_operator.component.objects import discovery_backend, object_metadata
from dynamo_operator.component.plan import ComponentPlan
from dynamo_operator.component.pod import namespace_defaults_record, pod_template
from dynamo_operator.component.render import component_plan, model_services, namespace_defaults, services
from dynamo_operator.component.service import component_of, component_resource
from dynamo_operator.component.wait_for_leader import wait_config_maps
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.names import LEADER_SUFFIX, WORKER_SUFFIX, kai_queue
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LiveTemplate, PodCliqueSet
from dynamo_operator.shared.problems import Problem, service_path
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Object

UPDATE_STRATEGIES = ("RollingRecreate", "OnDelete")
"""How Grove may replace pods of a changed template: values of `nvidia.com/grove-update-strategy`."""

_KAI = "kai-scheduler"


def grove_objects(graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings) -> tuple[Object, ...]:
    """Return Services, Ingresses or VirtualServices, ConfigMaps, and the PodCliqueSet of a graph."""
    plans = {key: _plan(graph, key, facts, settings) for key in sorted(graph.spec.services)}
    frontends = [plan for plan in plans.values() if plan.component_type == "frontend"]
    return (
        *chain.from_iterable(map(_services, plans.values())),
        *chain.from_iterable(map(exposing_objects, frontends)),
        *chain.from_iterable(map(wait_config_maps, plans.values())),
        _pod_clique_set(graph, plans, facts, settings),
    )


def grove_model_objects(graph: DynamoGraphDeployment) -> tuple[Object, ...]:
    """Return the Services of the graph's models, one for each model."""
    by_name = {
        service["metadata"]["name"]: service
        for _, spec in sorted(graph.spec.services.items())
        for service in model_services(graph.metadata.namespace, spec)
    }
    return tuple(by_name.values())


def grove_units(
    graph: DynamoGraphDeployment, facts: Facts, settings: RenderSettings, pods: Mapping[str, tuple[Pod, ...]]
) -> dict[str, ComponentUnit]:
    """The services of a graph on Grove, by component name. `pods` are theirs by service."""
    facts, units = _without_account(facts), grove_names_of(graph).services
    return {
        names.component_name(graph.metadata.name, key): ComponentUnit(
            units[key],
            namespace_defaults(_component(graph, key, settings), facts, settings),
            pods.get(key, ()),
        )
        for key in graph.spec.services
    }


def _without_account(facts: Facts) -> Facts:
    """The facts without marked ServiceAccounts, which pods on Grove do not get."""
    return replace(facts, component_service_account="")


def _discovery(graph: DynamoGraphDeployment, settings: RenderSettings) -> dict[str, str]:
    return {labels.DISCOVERY_BACKEND: discovery_backend(graph.metadata.annotations, settings)}


def _component(graph: DynamoGraphDeployment, key: str, settings: RenderSettings) -> DynamoComponentDeployment:
    desired = component_resource(graph, key, settings)
    spec = desired["spec"]
    spec["annotations"] = spec.get("annotations", {}) | _discovery(graph, settings)
    return component_of(graph, desired)


def _plan(graph: DynamoGraphDeployment, key: str, facts: Facts, settings: RenderSettings) -> ComponentPlan:
    discovery = _discovery(graph, settings)
    plan = component_plan(_component(graph, key, settings), _without_account(facts), settings)
    return replace(
        plan,
        service_account=plan.service_account if plan.is_discovered_by_kubernetes else "",
        switches={},
        annotations={key: text for key, text in plan.annotations.items() if key not in labels.SWITCHES},
        pod_annotations=discovery | plan.pod_annotations,
    )


def _services(plan: ComponentPlan) -> tuple[Object, ...]:
    has_clients = plan.component_type in ("frontend", "epp")
    if not plan.is_discovered_by_kubernetes and not has_clients:
        return ()
    rendered = services(plan)
    for service in rendered:
        service["spec"]["selector"].pop(labels.ROLE, None)  # pods on Grove do not have this label
        if plan.is_discovered_by_kubernetes:
            service["metadata"]["labels"][labels.DISCOVERY_ENABLED] = "true"
        if plan.component_type == "epp":
            for port in service["spec"]["ports"]:
                port["appProtocol"] = "http2"
    return rendered


def _pod_clique_set(
    graph: DynamoGraphDeployment, plans: Mapping[str, ComponentPlan], facts: Facts, settings: RenderSettings
) -> Object:
    grove_names, present = grove_names_of(graph), facts.live_templates
    members = [(grove_names.services[key], plan) for key, plan in plans.items()]
    is_ordered = any(plan.nodes > 1 and plan.backend.starts_leader_last for plan in plans.values())
    cliques = [clique for name, plan in members for clique in _cliques(graph, facts, plan, name)]
    template: Object = {
        "cliques": _in_live_order(cliques, present),
        "cliqueStartupType": f"CliqueStartupType{'Explicit' if is_ordered else 'AnyOrder'}",
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
    }
    if groups := [_scaling_group(graph, facts, plan, name) for name, plan in members if plan.nodes > 1]:
        template["podCliqueScalingGroups"] = _in_live_order(groups, present)
    if settings.grove_termination_delay_seconds > 0:
        template["terminationDelay"] = _duration(settings.grove_termination_delay_seconds)
    if graph.spec.priority_class_name:
        template["priorityClassName"] = graph.spec.priority_class_name
    template |= _topology(graph, facts, "", (graph.spec.topology_constraint or {}).get("packDomain"))
    spec: Object = {"replicas": 1, "template": template}
    if (strategy := graph.metadata.annotations.get(labels.GROVE_UPDATE_STRATEGY)) in UPDATE_STRATEGIES:
        spec["updateStrategy"] = {"type": strategy}
    record = namespace_defaults_record(*plans.values())
    metadata = object_metadata(graph.metadata.namespace, grove_names.set, {}, record)
    return PodCliqueSet.KIND.manifest(metadata, spec=spec)


def _in_live_order(entries: Sequence[Object], present: Mapping[str, object]) -> list[Object]:
    # New ones follow in the order given.
    position = {name: index for index, name in enumerate(present)}
    return sorted(entries, key=lambda entry: position.get(entry["name"], len(position)))


def _cliques(graph: DynamoGraphDeployment, facts: Facts, plan: ComponentPlan, name: str) -> Sequence[Object]:
    clique = partial(_clique, graph, facts, plan)
    if plan.nodes == 1:
        return (clique(name, None, size=_size(facts, name, plan), least=_least(plan)),)
    leader, workers = f"{name}{LEADER_SUFFIX}", f"{name}{WORKER_SUFFIX}"
    hosts = _hosts(name, plan.nodes)
    first = clique(leader, GroupNode(is_leader=True, hosts=hosts), size=1, least=1)
    if plan.backend.starts_leader_last:
        first["spec"]["startsAfter"] = [workers]
    rest = plan.nodes - 1
    return (first, clique(workers, GroupNode(is_leader=False, hosts=hosts), size=rest, least=rest))


def _clique(
    graph: DynamoGraphDeployment,
    facts: Facts,
    plan: ComponentPlan,
    name: str,
    node: GroupNode | None,
    *,
    size: int,
    least: int,
) -> Object:
    template = pod_template(plan, plan.name, node=node)
    metadata, pod = template["metadata"], template["spec"]
    present = facts.live_templates.get(name, LiveTemplate())
    has_kai = facts.kai_served if present.scheduler is None else present.scheduler == _KAI
    if has_kai and pod.get("schedulerName", _KAI) == _KAI:
        pod["schedulerName"] = _KAI
        metadata["labels"][labels.KAI_QUEUE_LABEL] = kai_queue(graph)
    if present.restart:
        kept = {labels.RESTART_AT: present.restart}
        metadata["annotations"] = kept | metadata.get("annotations", {})
    least = present.min_available or least
    spec = {"roleName": name, "replicas": size, "minAvailable": least, "podSpec": pod}
    domain = _domain(plan) if node is None else None  # else that of the scaling group
    return {"name": name, **metadata, "spec": spec, **_topology(graph, facts, name, domain)}


def _scaling_group(graph: DynamoGraphDeployment, facts: Facts, plan: ComponentPlan, name: str) -> Object:
    return {
        "name": name,
        "cliqueNames": [f"{name}{LEADER_SUFFIX}", f"{name}{WORKER_SUFFIX}"],
        "replicas": _size(facts, name, plan),
        "minAvailable": facts.live_templates.get(name, LiveTemplate()).min_available or _least(plan),
        **_topology(graph, facts, name, _domain(plan)),
    }


def _domain(plan: ComponentPlan) -> str | None:
    """The topology domain into which each replica is packed."""
    return (plan.spec.topology_constraint or {}).get("packDomain")


def _topology(graph: DynamoGraphDeployment, facts: Facts, name: str, domain: str | None) -> Object:
    """The topology constraint of a clique or a scaling group, or of the set, whose name is "", as a field."""
    if facts.live_templates:  # Grove rejects every change of those of an existing set
        constraint = facts.live_templates.get(name, LiveTemplate()).topology
    else:
        constraint = _constraint(graph, name, domain)
    return {} if constraint is None else {"topologyConstraint": constraint}


def _constraint(graph: DynamoGraphDeployment, name: str, domain: str | None) -> Object | None:
    """The topology constraint of that name in a new set."""
    if not domain:
        return None
    of_graph = graph.spec.topology_constraint or {}
    is_inherited = bool(name and of_graph.get("packDomain"))
    topology = {} if is_inherited else {"topologyName": of_graph.get("topologyProfile")}
    return {**topology, "pack": {"required": domain}}


def kept_fields(graph: DynamoGraphDeployment, facts: Facts) -> Iterator[Problem]:
    """Warnings about fields of a graph whose existing set keeps another value, since Grove rejects a change.

    They differ where another operator or an older one created the set, or where webhooks were off; else an
    edit of most of them is refused.
    """
    grove_names, live = grove_names_of(graph), facts.live_templates
    by_path = {"spec": ("", graph.spec.topology_constraint)}
    schedulers = set[str | None]()
    for key, service in sorted(graph.spec.services.items()):
        name = grove_names.services[key]
        by_path[service_path(key)] = name, service.topology_constraint
        least = live[name].min_available if name in live else None
        if None not in (least, service.min_available) and least != service.min_available:
            yield _kept(f"{service_path(key)}.minAvailable", grove_names.set, f"keeps the minimum {least}")
        if not (service.extra_pod_spec or {}).get("schedulerName"):
            clique = name if service.nodes == 1 else f"{name}{LEADER_SUFFIX}"
            schedulers.add(live[clique].scheduler if clique in live else None)
    for path, (name, asked) in by_path.items():
        wanted = _constraint(graph, name, (asked or {}).get("packDomain")) or {}
        present = live[name].topology or {} if name in live else wanted
        is_other = any(present.get(field) != value for field, value in wanted.items())
        if is_other or (present and not wanted):
            text = f"keeps the constraint {msgspec.json.encode(present).decode()}" if present else "has none"
            yield _kept(f"{path}.topologyConstraint", grove_names.set, text)
    if labels.KAI_QUEUE in graph.metadata.annotations and schedulers - {None, _KAI}:
        path = f"metadata.annotations[{labels.KAI_QUEUE}]"
        yield _kept(path, grove_names.set, "keeps the scheduler with which it was created")


def _kept(path: str, set_name: str, text: str) -> Problem:
    return Problem(path, f"PodCliqueSet {set_name} {text}: Grove allows no change (create the graph anew)")


def _least(plan: ComponentPlan) -> int:
    """The replicas that must run."""
    return plan.spec.min_available or 1


def _size(facts: Facts, name: str, plan: ComponentPlan) -> int:
    """The size in the template. Grove rejects fewer than must run, so the live object is scaled further."""
    present = facts.live_templates.get(name, LiveTemplate()).replicas
    return max(_least(plan), plan.replicas) if present is None else present


def _hosts(name: str, nodes: int) -> Hosts:

    def host(suffix: str, index: int) -> Fragment:
        text = f"$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-{name}{suffix}-{index}.$(GROVE_HEADLESS_SERVICE)"
        return Fragment(text, text)

    rank = "$((GROVE_PCLQ_POD_INDEX + 1))"
    return Hosts(
        leader=host(LEADER_SUFFIX, 0),
        workers=tuple(host(WORKER_SUFFIX, index) for index in range(nodes - 1)),
        worker_rank=Fragment(rank),
        rank_term=rank,
    )


def _duration(seconds: int) -> str:
    """Format seconds as Go does, such as `15m0s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    text = f"{minutes}m{rest}s" if minutes or hours else f"{rest}s"
    return f"{hours}h{text}" if hours else text
