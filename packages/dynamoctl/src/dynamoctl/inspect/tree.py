"""The objects of a graph as a tree, with their readiness and what blocks a pod. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec
from rich.text import Text
from rich.tree import Tree

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.status import pods
from dynamo_graphs.status.readiness import is_ready, summary
from dynamo_graphs.status.workload import deployment_readiness
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup
from dynamo_graphs.types.optional_apis import LeaderWorkerSet, LeaderWorkerSetSpec
from dynamoctl.cluster.members import ORDER
from kube_runtime.commandline.errors import visible
from kube_runtime.kind import Object
from kube_runtime.types.apps import Deployment, DeploymentSpec, ReplicaSet
from kube_runtime.types.core import Pod
from kube_runtime.types.meta import Resource


@dataclass(frozen=True, slots=True)
class TreeNode:
    """An object and those that it owns. `is_ready` is None for kinds without readiness, such as a Role."""

    kind: str
    name: str
    is_ready: bool | None
    note: str
    children: tuple["TreeNode", ...]


def tree_of(
    root: Resource,
    by_owner: Mapping[str, Sequence[Resource]],
    *,
    now: datetime,
    above: frozenset[str] = frozenset(),
) -> TreeNode:
    """`root` and everything that it owns. `above` are the uids of its owners."""
    uid = root.metadata.uid
    # Users may write owner references: a circle must not be an endless tree.
    below = () if uid in above else by_owner.get(uid, ())
    ordered = sorted(below, key=lambda child: (ORDER[type(child)], child.metadata.name))
    return TreeNode(
        kind=root.KIND.name,
        name=root.metadata.name,
        is_ready=_is_ready(root),
        note=_note(root, now),
        children=tuple(tree_of(child, by_owner, now=now, above=above | {uid}) for child in ordered),
    )


def drawn(node: TreeNode) -> Tree:
    """The tree, ready for printing."""
    tree = Tree(_line(node), guide_style="dim")
    tree.children += map(drawn, node.children)
    return tree


def tree_json(node: TreeNode) -> Object:
    """The tree as JSON values."""
    return {
        "kind": node.kind,
        "name": node.name,
        "ready": node.is_ready,
        "note": node.note,
        "children": [tree_json(child) for child in node.children],
    }


def _line(node: TreeNode) -> Text:
    mark = {True: ("✔ ", "green"), False: ("✘ ", "red"), None: ("  ", "")}[node.is_ready]
    line = Text.assemble(mark, (visible(node.kind), "bold"), " ", visible(node.name))
    if node.note:
        line.append(f"  {visible(node.note)}", style="dim")
    return line


def _is_ready(resource: Resource) -> bool | None:
    match resource:
        case (
            DynamoGraphDeployment()
            | DynamoComponentDeployment()
            | DynamoGraphDeploymentScalingAdapter()
        ):
            return is_ready(resource)
        case Deployment():
            return deployment_readiness(resource).is_ready
        case LeaderWorkerSet() | PodClique() | PodCliqueScalingGroup():
            ready, desired = _replicas(resource) or (0, 0)
            return ready >= desired
        case Pod() if resource.status.phase != "Succeeded":
            return pods.is_ready(resource)
        case _:
            return None


def _note(resource: Resource, now: datetime) -> str:
    replicas = _replicas(resource)
    notes = (
        f"{replicas[0]}/{replicas[1]}" if replicas else _state(resource, now),
        "is being deleted" if resource.metadata.deletion_timestamp else "",
    )
    return "; ".join(text for text in notes if text)


def _replicas(resource: Resource) -> tuple[int, int] | None:
    """Ready and desired replicas; None for a kind without replicas."""
    match resource:
        case Deployment(spec=raw, status=status):
            return status.ready_replicas, msgspec.json.decode(raw, type=DeploymentSpec).replicas
        case LeaderWorkerSet(spec=raw, status=status):
            return status.ready_replicas, msgspec.json.decode(
                raw, type=LeaderWorkerSetSpec
            ).replicas
        case ReplicaSet(spec=spec, status=status) | PodClique(spec=spec, status=status):
            return status.ready_replicas, spec.replicas or 0
        case PodCliqueScalingGroup(spec=spec, status=status):
            return status.available_replicas, spec.replicas or 0
        case _:
            return None


def _state(resource: Resource, now: datetime) -> str:
    match resource:
        case DynamoGraphDeployment(status=status):
            return status.state or "no status yet"
        case DynamoComponentDeployment() | DynamoGraphDeploymentScalingAdapter():
            overall = summary(resource)
            return "" if is_ready(resource) else overall.reason if overall else "no status yet"
        case Pod():
            return _pod(resource, now)
        case _:
            return ""


def _pod(pod: Pod, now: datetime) -> str:
    """The state of a pod and why it is not ready, in the words of a graph's status."""
    blockage = pods.pod_report(pod, now).blockage
    if blockage is None:
        return pod.status.phase
    container = f"container {blockage.container}: " if blockage.container else ""
    message = f": {blockage.message}" if blockage.message else ""
    return f"{pod.status.phase}; {container}{blockage.word}{message}"
