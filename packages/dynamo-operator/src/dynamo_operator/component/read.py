"""Read everything that one reconcile of a component depends on, once, from the cache."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dynamo_graphs.api import names
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.orchestrators import group_names
from dynamo_operator.reconcile.pods import PodIndex
from dynamo_operator.reconcile.read import LiveObjects, live_objects, read_facts
from kube_runtime.cache.cache import Cache
from kube_runtime.kind import Key
from kube_runtime.types.apps import StatefulSet
from kube_runtime.types.core import Pod
from kube_runtime.types.meta import Resource


@dataclass(frozen=True, slots=True)
class ComponentInputs:
    """The inputs of one reconcile.

    `live` are the objects that the component owns. `leaders` are the StatefulSets of the leaders by group;
    a group without one is missing. `pods` are those of the workload, without debug copies.
    """

    facts: Facts
    live: LiveObjects = field(default_factory=dict)
    leaders: Mapping[str, StatefulSet] = field(default_factory=dict)
    pods: tuple[Pod, ...] = ()


def read_component(
    component: DynamoComponentDeployment,
    cache: Cache,
    pods: PodIndex,
    owns: Iterable[type[Resource]],
) -> ComponentInputs:
    """Read the inputs of a component, which controls the kinds `owns`."""
    namespace, name = component.key
    facts = read_facts(namespace, cache)
    live = live_objects(component, cache, owns)
    if component.spec.nodes == 1:
        of_component = pods.of_workload(namespace, names.workload_name(name))
        return ComponentInputs(facts, live, pods=of_component)
    groups = group_names(component)
    leaders = {group: cache.get(StatefulSet, Key(namespace, group)) for group in groups}
    return ComponentInputs(
        facts,
        live,
        {group: leader for group, leader in leaders.items() if leader is not None},
        tuple(pod for group in groups for pod in pods.of_workload(namespace, group)),
    )
