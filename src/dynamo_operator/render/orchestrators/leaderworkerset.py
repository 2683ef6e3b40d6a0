"""A component on several nodes: one LeaderWorkerSet per replica, each placed as a whole by Volcano.

The hard part is that each replica is a set of its own, so that the order in which replicas go on a
scale-down is ours, and so that every group has one PodGroup of its own name. Source: specification
`rendering` 10.6.
"""

from dataclasses import dataclass

import msgspec

from dynamo_operator.api import labels, names
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.leaderworkerset import LeaderWorkerSet
from dynamo_operator.kube.types.volcano import PodGroup
from dynamo_operator.render.canonical import canonical
from dynamo_operator.render.group import Hosts, Node, Reference
from dynamo_operator.render.pod import pod_template
from dynamo_operator.render.seams import ComponentPlan, metadata
from dynamo_operator.render.shell import Fragment

_SCHEDULER = "volcano"


def workloads(plan: ComponentPlan) -> tuple[Object, ...]:
    """A PodGroup and a LeaderWorkerSet for each replica, in this order."""
    group = _group(plan)
    return tuple(
        wanted
        for index in range(plan.replicas)
        for wanted in (_pod_group(plan, index), _leader_worker_set(plan, group, index))
    )


def serving_labels() -> dict[str, str]:
    """Requests go to leaders only; workers serve them together with their leader."""
    return {labels.ROLE: "leader"}


def hosts(nodes: int) -> Hosts:
    """How the pods of one group meet: by the variables that LeaderWorkerSet puts into each.

    The name of a worker is the leader's with the worker's number behind its first part.
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
        names_come_late=True,
    )


def _pod_group(plan: ComponentPlan, index: int) -> Object:
    """The pods that Volcano places together or not at all."""
    own = {labels.INSTANCE: str(index)}
    return {
        "apiVersion": PodGroup.KIND.api_version,
        "kind": PodGroup.KIND.name,
        "metadata": metadata(plan, names.group_name(plan.name, index), own),
        "spec": {"minMember": plan.nodes},
    }


@dataclass(frozen=True, slots=True)
class _Group:
    """What all groups of a component have in common. `digest` stands for both templates."""

    leader: Object
    worker: Object
    digest: str


def _group(plan: ComponentPlan) -> _Group:
    found = hosts(plan.nodes)
    leader = _template(plan, Node(is_leader=True, hosts=found))
    worker = _template(plan, Node(is_leader=False, hosts=found))
    both = canonical({"size": plan.nodes, "leader": leader, "worker": worker})
    return _Group(leader, worker, names.short_hash(msgspec.json.encode(both).decode()))


def _template(plan: ComponentPlan, node: Node) -> Object:
    """The template of one kind of pod; what a group needs wins over the user's own labels."""
    template = pod_template(plan, plan.name, node=node)
    users = {k: v for k, v in template["metadata"]["labels"].items() if k != labels.SELECTOR}
    role = {labels.ROLE: "leader" if node.is_leader else "worker"}
    return {
        "metadata": {"labels": users | plan.labels | role, "annotations": plan.pod_annotations},
        "spec": {**template["spec"], "schedulerName": _SCHEDULER},
    }


def _leader_worker_set(plan: ComponentPlan, group: _Group, index: int) -> Object:
    name, own = names.group_name(plan.name, index), {labels.INSTANCE: str(index)}
    place = {labels.GROUP_NAME: name}
    leader = _marked(group.leader, own, place | {labels.GROUP_HASH: group.digest})
    return {
        "apiVersion": LeaderWorkerSet.KIND.api_version,
        "kind": LeaderWorkerSet.KIND.name,
        "metadata": metadata(plan, name, plan.labels | own, plan.annotations),
        "spec": {
            "replicas": 1,
            "startupPolicy": "LeaderCreated",
            "leaderWorkerTemplate": {
                "size": plan.nodes,
                "leaderTemplate": leader,
                "workerTemplate": _marked(group.worker, own, place),
            },
        },
    }


def _marked(template: Object, own: dict[str, str], annotations: dict[str, str]) -> Object:
    """The template with what tells its group from the others."""
    common = template["metadata"]
    both = {
        "labels": common["labels"] | own,
        "annotations": common["annotations"] | annotations,
    }
    return {**template, "metadata": both}
