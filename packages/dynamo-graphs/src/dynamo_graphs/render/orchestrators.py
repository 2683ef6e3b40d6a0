"""What runs the pods of a component: a Deployment, or LeaderWorkerSets when it spans several nodes.

Each replica on several nodes is a LeaderWorkerSet of its own, which Volcano schedules as a whole. So the
operator decides which replicas a scale-down removes, and every group has one PodGroup of its own name.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.render.interfaces import ComponentPlan, Orchestrator
from dynamo_graphs.render.launch import Fragment, GroupNode, Hosts, Reference
from dynamo_graphs.render.merge import canonical
from dynamo_graphs.render.metadata import object_metadata
from dynamo_graphs.render.pod import namespace_defaults_record, pod_template
from dynamo_graphs.types.optional_apis import LeaderWorkerSet, PodGroup
from kube_runtime.kind import Object

_DEFAULT_BOUND = "25%"
_SCHEDULER = "volcano"
_INTEGER = re.compile(r"[+-]?\d{1,10}", re.ASCII)


def _deployments(plan: ComponentPlan) -> tuple[Object, ...]:
    """The Deployment, and in the debug mode that steals traffic a second one with a single pod."""
    serving = _deployment(plan, names.workload_name(plan.name), plan.replicas, is_debug=False)
    if not plan.is_on(labels.STEALING_DEBUG_MODE):
        return (canonical(serving),)
    debug = _deployment(plan, names.debug_workload_name(plan.name), 1, is_debug=True)
    return (canonical(serving), canonical(debug))


def _deployment(plan: ComponentPlan, name: str, replicas: int, *, is_debug: bool) -> Object:
    annotations = plan.annotations | namespace_defaults_record(plan)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": object_metadata(plan.namespace, name, plan.labels, annotations),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {plan.workload_label: name}},
            "strategy": _strategy(plan),
            "template": pod_template(plan, name, is_debug=is_debug),
        },
    }


def _strategy(plan: ComponentPlan) -> Object:
    if plan.switches.get(labels.STRATEGY) == "Recreate":
        return {"type": "Recreate"}
    bounds = {
        "maxSurge": _bound(plan.annotations.get(labels.MAX_SURGE)),
        "maxUnavailable": _bound(plan.annotations.get(labels.MAX_UNAVAILABLE)),
    }
    return {"type": "RollingUpdate", "rollingUpdate": bounds}


def _bound(text: str | None) -> object:
    """The bound as an integer, or as text if it is a percentage."""
    if not text:
        return _DEFAULT_BOUND
    return int(text) if _INTEGER.fullmatch(text) else text


DEPLOYMENT = Orchestrator(_deployments, serving_labels={})


def _groups(plan: ComponentPlan) -> "Groups":
    """A PodGroup and a LeaderWorkerSet for each replica, in this order."""
    group_hosts = hosts(plan.nodes)
    leader = _template(plan, GroupNode(is_leader=True, hosts=group_hosts))
    worker = _template(plan, GroupNode(is_leader=False, hosts=group_hosts))
    both = canonical({"size": plan.nodes, "leader": leader, "worker": worker})
    return Groups(
        namespace=plan.namespace,
        component=plan.name,
        replicas=plan.replicas,
        nodes=plan.nodes,
        labels=plan.labels,
        annotations=plan.annotations | namespace_defaults_record(plan),
        leader=both["leader"],
        worker=both["worker"],
        digest=names.short_hash(msgspec.json.encode(both).decode()),
    )


def group_names(component: DynamoComponentDeployment) -> list[str]:
    """The names of the groups: of their LeaderWorkerSets, and of their PodGroups."""
    replicas = range(component.spec.desired_replicas)
    return [names.group_name(component.metadata.name, index) for index in replicas]


def hosts(nodes: int) -> Hosts:
    """How the pods of a group address each other, by variables that LeaderWorkerSet sets.

    The host name of a worker is the leader's with `-INDEX` appended to its first label.
    """
    leader = "LWS_LEADER_ADDRESS"
    workers = (
        Reference(Fragment(f"$(echo \"${leader}\" | sed 's/\\./-{index}\\./')"))
        for index in range(1, nodes)
    )
    return Hosts(
        leader=Reference(Fragment(f"${leader}"), f"$({leader})"),
        workers=tuple(workers),
        worker_rank=Reference(Fragment("$(LWS_WORKER_INDEX)")),
        rank_term="LWS_WORKER_INDEX",
        names_come_late=True,
    )


@dataclass(frozen=True, slots=True)
class Groups(Sequence[Object]):
    """The objects of all groups of a component, each rendered when it is read.

    They share the pod templates, which are nearly all of their size. `digest` is that of both templates. All
    fields are plain values, so that a worker process can send them at little cost.
    """

    namespace: str
    component: str
    replicas: int
    nodes: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    leader: Object
    worker: Object
    digest: str

    def __len__(self) -> int:
        return 2 * self.replicas

    @overload
    def __getitem__(self, index: int) -> Object: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Object, ...]: ...

    def __getitem__(self, index: int | slice) -> Object | tuple[Object, ...]:
        positions = range(len(self))[index]
        if isinstance(positions, int):
            return self._rendered(positions)
        return tuple(map(self._rendered, positions))

    def _rendered(self, index: int) -> Object:
        group, is_leader_worker_set = divmod(index, 2)
        return self._leader_worker_set(group) if is_leader_worker_set else self._pod_group(group)

    def _pod_group(self, index: int) -> Object:
        """The PodGroup of a group, whose pods Volcano places together or not at all."""
        return {
            "apiVersion": PodGroup.KIND.api_version,
            "kind": PodGroup.KIND.name,
            "metadata": self._metadata(index, {}, {}),
            "spec": {"minMember": self.nodes},
        }

    def _leader_worker_set(self, index: int) -> Object:
        own = {labels.INSTANCE: str(index)}
        place = {labels.GROUP_NAME: names.group_name(self.component, index)}
        marked = _marked(self.leader, own, place | {labels.GROUP_HASH: self.digest})
        return {
            "apiVersion": LeaderWorkerSet.KIND.api_version,
            "kind": LeaderWorkerSet.KIND.name,
            "metadata": self._metadata(index, self.labels, self.annotations),
            "spec": {
                "leaderWorkerTemplate": {
                    "leaderTemplate": marked,
                    "size": self.nodes,
                    "workerTemplate": _marked(self.worker, own, place),
                },
                "replicas": 1,
                "startupPolicy": "LeaderCreated",
            },
        }

    def _metadata(
        self, index: int, common: Mapping[str, str], annotations: Mapping[str, str]
    ) -> Object:
        own = {labels.INSTANCE: str(index)}
        return {
            **({"annotations": _in_order(annotations)} if annotations else {}),
            "labels": _in_order({**common, **own}),
            "name": names.group_name(self.component, index),
            "namespace": self.namespace,
        }


def _template(plan: ComponentPlan, node: GroupNode) -> Object:
    """The template of leaders or workers. Labels that a group requires override the user's."""
    template = pod_template(plan, plan.name, node=node)
    users = {k: v for k, v in template["metadata"]["labels"].items() if k != labels.SELECTOR}
    role = {labels.ROLE: "leader" if node.is_leader else "worker"}
    return {
        "metadata": {"labels": users | plan.labels | role, "annotations": plan.pod_annotations},
        "spec": {**template["spec"], "schedulerName": _SCHEDULER},
    }


def _marked(template: Object, own: dict[str, str], annotations: dict[str, str]) -> Object:
    """The template with the labels and annotations of its group; the spec is shared."""
    common = template["metadata"]
    both = {
        "annotations": _in_order(common["annotations"] | annotations),
        "labels": _in_order(common["labels"] | own),
    }
    return {"metadata": both, "spec": template["spec"]}


def _in_order(texts: Mapping[str, str]) -> dict[str, str]:
    """Sort the entries as `canonical` does, but share their texts: there may be a thousand groups."""
    return dict(sorted(texts.items()))


LEADER_WORKER_SETS = Orchestrator(_groups, serving_labels={labels.ROLE: "leader"})
"""Only leaders receive requests, which they serve together with their workers."""
