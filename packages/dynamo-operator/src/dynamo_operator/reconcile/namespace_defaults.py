"""Render workloads with what their running pods got from the namespace, where nothing else has changed.

`dynamo_graphs.plan.namespace_defaults` decides. This module finds the workloads of the components.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import component_name, grove_names_of
from dynamo_graphs.facts import Facts, NamespaceDefaults
from dynamo_graphs.plan.namespace_defaults import is_otherwise_same, running_defaults
from dynamo_graphs.plan.templates import DEPLOYMENT_UNIT, GROUP_UNIT, WORKLOADS
from dynamo_graphs.render.grove import grove_namespace_defaults
from dynamo_graphs.render.plan import namespace_defaults
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.pods import lacks_image
from dynamo_operator.reconcile.read import LiveObjects
from kube_runtime.apply.drift import content_of
from kube_runtime.kind import Object, key_of
from kube_runtime.types.core import Pod


@dataclass(frozen=True, slots=True)
class Member:
    """A component as part of its workloads: the unit of its templates, its pods, its present defaults."""

    unit: str
    now: NamespaceDefaults
    pods: tuple[Pod, ...] = ()


def component_member(
    component: DynamoComponentDeployment,
    facts: Facts,
    settings: RenderSettings,
    pods: tuple[Pod, ...] = (),
) -> dict[str, Member]:
    """A component, by its name, as the only member of its workloads."""
    unit = DEPLOYMENT_UNIT if component.spec.nodes == 1 else GROUP_UNIT
    now = namespace_defaults(component, facts, settings)
    return {component.metadata.name: Member(unit, now, pods)}


def grove_members(
    graph: DynamoGraphDeployment,
    facts: Facts,
    settings: RenderSettings,
    pods: Mapping[str, tuple[Pod, ...]],
) -> dict[str, Member]:
    """The services of a graph on Grove, by component name. `pods` are theirs by service."""
    units = grove_names_of(graph).services
    return {
        component_name(graph.metadata.name, key): Member(units[key], now, pods.get(key, ()))
        for key, now in grove_namespace_defaults(graph, facts, settings).items()
    }


def kept_defaults(
    members: Mapping[str, Member], live: LiveObjects, facts: Facts
) -> dict[str, NamespaceDefaults]:
    """The defaults of running pods that differ from the present ones, by component.

    The first workload decides: an apply that was interrupted has written that one.
    """
    first = min((key for key in live if key[0] in WORKLOADS), default=None)
    if first is None:
        return {}
    running = {
        component: running_defaults(
            *(component, member.unit, member.now, live[first], facts),
            is_idle=not member.pods or lacks_image(member.pods),
        )
        for component, member in members.items()
    }
    return {name: kept for name, kept in running.items() if kept != members[name].now}


def still_kept(
    kept: Mapping[str, NamespaceDefaults],
    members: Mapping[str, Member],
    desired: Iterable[Object],
    live: LiveObjects,
) -> dict[str, NamespaceDefaults]:
    """Those of the defaults with which some live workload would not change."""
    still = dict[str, NamespaceDefaults]()
    for body in desired:
        running = live.get((body["kind"], key_of(body))) if body["kind"] in WORKLOADS else None
        if running is None:
            continue
        content = content_of(running)
        for component in kept.keys() - still.keys():
            if is_otherwise_same(body, content, members[component].unit):
                still[component] = kept[component]
        if still.keys() == kept.keys():
            break
    return still
