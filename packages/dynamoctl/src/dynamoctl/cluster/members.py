"""Read the objects that belong to a graph, whether the operator, Kubernetes or Grove created them.

A namespace may have the pods of a hundred graphs, so each kind is listed by its labels. Objects of Grove and
PVCs have none of our labels: there are few of them, and they are listed completely. Kinds of other projects
are listed only where they are served.
"""

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_graphs.types.optional_apis import (
    SET_NAME,
    InferencePool,
    LeaderWorkerSet,
    PodGroup,
    VirtualService,
)
from kube_runtime.client.requests import Client
from kube_runtime.errors import Forbidden, NotFound
from kube_runtime.kind import Key
from kube_runtime.types.apps import Deployment, ReplicaSet, StatefulSet
from kube_runtime.types.core import ConfigMap, PersistentVolumeClaim, Pod, Service, ServiceAccount
from kube_runtime.types.discovery import EndpointSlice
from kube_runtime.types.meta import Resource
from kube_runtime.types.networking import Ingress
from kube_runtime.types.policy import PodDisruptionBudget
from kube_runtime.types.rbac import Role, RoleBinding

_OF_GRAPH = f"{labels.GRAPH}={{graph}}"
_OURS = f"{labels.APP_MANAGED_BY}={labels.MANAGER}"
_OF_MODEL = f"{labels.MANAGED_BY}={labels.MANAGER}"
"""The Service of a base model belongs to every graph that serves it, so it has no graph's label."""

_SELECTED: tuple[tuple[type[Resource], str], ...] = (
    (ServiceAccount, _OURS),
    (Role, _OURS),
    (RoleBinding, _OURS),
    (PersistentVolumeClaim, ""),
    (DynamoGraphDeploymentScalingAdapter, ""),
    (DynamoComponentDeployment, _OF_GRAPH),
    (PodCliqueSet, ""),
    (PodCliqueScalingGroup, ""),
    (PodClique, ""),
    (Deployment, _OF_GRAPH),
    (ReplicaSet, _OF_GRAPH),
    (PodGroup, ""),
    (LeaderWorkerSet, _OF_GRAPH),
    (StatefulSet, SET_NAME),
    (Pod, _OF_GRAPH),
    (Service, _OF_GRAPH),
    (Service, _OF_MODEL),
    (EndpointSlice, _OF_GRAPH),
    (EndpointSlice, _OF_MODEL),
    (ConfigMap, _OF_GRAPH),
    (Ingress, _OF_GRAPH),
    (VirtualService, _OF_GRAPH),
    (InferencePool, _OF_GRAPH),
    (PodDisruptionBudget, _OF_GRAPH),
)
"""Each kind with the selector of its objects, in the order of a tree."""

ORDER: Mapping[type[Resource], int] = {
    type_: position for position, (type_, _) in enumerate(_SELECTED)
}
"""Position of a kind in a tree."""


@dataclass(frozen=True, slots=True)
class Members:
    """The objects by the uid of each owner, and a line for whatever could not be read."""

    by_owner: Mapping[str, list[Resource]]
    unread: tuple[str, ...]


async def members(client: Client, graph: Key) -> Members:
    """Read the objects that may belong to the graph; a kind that the user may not list is reported.

    Raises:
        ExceptionGroup: of ApiError and Unreachable.
    """
    groups = await served_groups(client)
    value = names.label_value(graph.name)
    async with asyncio.TaskGroup() as together:
        lists = [
            together.create_task(
                _listed(client, type_, graph.namespace, selector.format(graph=value))
            )
            for type_, selector in _SELECTED
            if type_.KIND.group in groups
        ]
    by_owner: dict[str, list[Resource]] = defaultdict(list)
    unread: dict[str, None] = {}
    for resources, notes in (task.result() for task in lists):
        unread.update(dict.fromkeys(notes))
        for resource in resources:
            for owner in {owner.uid for owner in resource.metadata.owner_references}:
                by_owner[owner].append(resource)
    return Members(by_owner, tuple(unread))


async def served_groups(client: Client) -> set[str]:
    """The API groups of the cluster; "" is the core group."""
    answer = await client.get_json("apis")
    return {"", *(group["name"] for group in answer["groups"])}


async def _listed(
    client: Client, type_: type[Resource], namespace: str, selector: str
) -> tuple[list[Resource], list[str]]:
    """The objects of a kind, and a line for whatever could not be read."""
    resources: list[Resource] = []
    notes: list[str] = []
    try:
        async for page in client.pages(type_, namespace=namespace, labels=selector):
            resources += page.items
            notes += (str(error) for error in page.broken)
    except Forbidden as error:
        notes.append(f"cannot list {type_.KIND}: {error.message}")
    except NotFound:  # the group is served, but not this kind or version
        return [], []
    return resources, notes
