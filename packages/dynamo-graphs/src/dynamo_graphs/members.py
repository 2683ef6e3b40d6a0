"""The objects that belong to a graph: read from its cluster, as a tree, and the Events about them."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

from dynamo_graphs.reader import served_groups
from dynamo_operator import labels, names
from dynamo_operator.component import diagnosis
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.status import deployment_readiness
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.cluster import (
    SET_NAME,
    InferencePool,
    LeaderWorkerSet,
    LeaderWorkerSetSpec,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodGroup,
    VirtualService,
)
from dynamo_operator.shared.conditions import Stated, is_ready, summary
from kube_runtime.client.client import Client
from kube_runtime.errors import Forbidden, NotFound
from kube_runtime.types import kinds
from kube_runtime.types.kinds import Deployment, DeploymentSpec, Job, Pod
from kube_runtime.types.meta import Key, Kind, Object, R, Resource, Struct, from_json


class ReplicaSetSpec(Struct):
    """The desired number of pods of one revision."""

    replicas: int = 1


class ReplicaSetStatus(Struct):
    """The observed state of a ReplicaSet."""

    ready_replicas: int = 0


class ReplicaSet(Resource):
    """One revision of a Deployment."""

    KIND = Kind("apps", "v1", "ReplicaSet")

    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


_OF_GRAPH = f"{labels.GRAPH}={{graph}}"
_OURS = f"{labels.APP_MANAGED_BY}={labels.MANAGER}"
_OF_MODEL = f"{labels.MANAGED_BY}={labels.MANAGER}"
"""The Service of a base model belongs to every graph that serves it, so it has no graph's label."""

# A namespace may have the pods of a hundred graphs, so each kind is listed by its labels. Objects
# of Grove and PVCs have none of our labels: there are few of them, and they are listed completely.
_SELECTED: tuple[tuple[type[Resource], str], ...] = (
    (kinds.ServiceAccount, _OURS),
    (kinds.Role, _OURS),
    (kinds.RoleBinding, _OURS),
    (kinds.PersistentVolumeClaim, ""),
    (DynamoGraphDeploymentScalingAdapter, ""),
    (DynamoComponentDeployment, _OF_GRAPH),
    (PodCliqueSet, ""),
    (PodCliqueScalingGroup, ""),
    (PodClique, ""),
    (kinds.Deployment, _OF_GRAPH),
    (ReplicaSet, _OF_GRAPH),
    (PodGroup, ""),
    (LeaderWorkerSet, _OF_GRAPH),
    (kinds.StatefulSet, SET_NAME),
    (kinds.Pod, _OF_GRAPH),
    (kinds.Service, _OF_GRAPH),
    (kinds.Service, _OF_MODEL),
    (kinds.EndpointSlice, _OF_GRAPH),
    (kinds.EndpointSlice, _OF_MODEL),
    (kinds.ConfigMap, _OF_GRAPH),
    (kinds.Ingress, _OF_GRAPH),
    (VirtualService, _OF_GRAPH),
    (InferencePool, _OF_GRAPH),
    (kinds.PodDisruptionBudget, _OF_GRAPH),
)
"""Each kind with the selector of its objects, in the order of a tree."""

_ORDER: Mapping[type[Resource], int] = {type_: position for position, (type_, _) in enumerate(_SELECTED)}
"""Position of a kind in a tree; others are first."""


@dataclass(frozen=True, slots=True)
class Members:
    """The objects by the uid of each owner, and a line for whatever could not be read."""

    by_owner: Mapping[str, list[Resource]]
    unread: tuple[str, ...]


async def members(client: Client, graph: Key) -> Members:
    """Read the objects that may belong to the graph; a kind that the user may not list is reported.

    Raises: ExceptionGroup of ApiError and Unreachable.
    """
    groups = await served_groups(client)
    value = names.label_value(graph.name)
    by_owner: dict[str, list[Resource]] = defaultdict(list)
    unread: dict[str, None] = {}

    async def read(type_: type[Resource], selector: str) -> None:
        try:
            async for page in client.pages(type_, namespace=graph.namespace, labels=selector):
                unread.update((str(error), None) for error in page.broken)
                for resource in page.items:
                    for owner in {owner.uid for owner in resource.metadata.owner_references}:
                        by_owner[owner].append(resource)
        except Forbidden as error:
            unread[f"cannot list {type_.KIND}: {error.message}"] = None
        except NotFound:  # the group is served, but not this kind or version
            pass

    async with asyncio.TaskGroup() as together:
        for type_, selector in _SELECTED:
            if type_.KIND.group in groups:
                together.create_task(read(type_, selector.format(graph=value)))
    return Members(by_owner, tuple(sorted(unread)))


async def members_of(client: Client, stated: Stated) -> Members:
    """As `members`, of an object of any of our kinds: what it owns, and what it is about.

    Below a scaling adapter is the component that it scales, below a model each pod that loads it, below a
    request its profiling Job and its graph.

    Raises: as `members`; OperatorError.
    """
    namespace, name = stated.key
    match stated:
        case DynamoGraphDeploymentScalingAdapter(spec=spec) if spec is not None:
            found = await members(client, Key(namespace, spec.dgd_ref.name))
            service = spec.dgd_ref.service_name
            owned = (resource for of_owner in found.by_owner.values() for resource in of_owner)
            components = [it for it in owned if isinstance(it, DynamoComponentDeployment)]
            return _with(found, stated, (it for it in components if it.spec.service_name == service))
        case DynamoModel(status=status):
            pods = {it.pod_name for it in status.endpoints if it.pod_name}
            loaded = [await _read(client, Pod, Key(namespace, pod)) for pod in sorted(pods)]
            return _with(Members({}, ()), stated, loaded)
        case DynamoGraphDeploymentRequest(status=status):
            created, found = status.deployment, Members({}, ())
            graph_key = (
                Key(created.namespace or namespace, created.name) if created and created.name else None
            )
            graph = await _read(client, DynamoGraphDeployment, graph_key) if graph_key else None
            if graph is not None:
                found = await members(client, graph.key)
            job_name = status.profiling_job_name
            job = await _read(client, Job, Key(namespace, job_name)) if job_name else None
            if job is not None:
                found = _with(found, job, await _pods_of(client, job))
            return _with(found, stated, (job, graph))
        case _:
            return await members(client, Key(namespace, stated.metadata.labels.get(labels.GRAPH, name)))


def _with(found: Members, owner: Resource, below: Iterable[Resource | None]) -> Members:
    """The members, with these objects below their owner."""
    known = [it for it in below if it is not None]
    return Members({**found.by_owner, owner.metadata.uid: known}, found.unread)


async def _read(client: Client, type_: type[R], key: Key) -> R | None:
    try:
        return await client.get(type_, key)
    except (Forbidden, NotFound):
        return None


async def _pods_of(client: Client, job: Job) -> list[Pod]:
    pods: list[Pod] = []
    try:
        async for page in client.pages(
            Pod, namespace=job.metadata.namespace, labels=f"job-name={job.metadata.name}"
        ):
            pods += page.items
    except Forbidden:
        return []
    return pods


def owned_uids(root: Resource, by_owner: Mapping[str, Sequence[Resource]]) -> frozenset[str]:
    """The uids of an object and of everything below it."""
    uids: dict[str, None] = {}
    left = [root.metadata.uid]
    while left:
        uid = left.pop()
        if uid not in uids:  # users may write owner references, also in a circle
            uids[uid] = None
            left += (child.metadata.uid for child in by_owner.get(uid, ()))
    return frozenset(uids)


def tree_of(
    root: Resource,
    by_owner: Mapping[str, Sequence[Resource]],
    *,
    now: datetime,
    version_of: Callable[[Kind], str] = attrgetter("version"),
    above: frozenset[str] = frozenset(),
) -> Object:
    """`root` and everything that it owns, as JSON values. `above` are the uids of its owners.

    `version_of` is the version in which users read a kind. `ready` is null for kinds without readiness, such
    as a Role.
    """
    uid = root.metadata.uid
    # Users may write owner references: a circle must not be an endless tree.
    below = () if uid in above else by_owner.get(uid, ())
    is_well, state = _state(root, now)
    deleted = "is being deleted" if root.metadata.deletion_timestamp else ""
    ordered = sorted(below, key=lambda child: (_ORDER.get(type(child), -1), child.metadata.name))
    return {
        "apiVersion": replace(root.KIND, version=version_of(root.KIND)).api_version,
        "kind": root.KIND.name,
        "name": root.metadata.name,
        "ready": is_well,
        "note": "; ".join(filter(None, (state, deleted))),
        "children": [
            tree_of(child, by_owner, now=now, version_of=version_of, above=above | {uid}) for child in ordered
        ],
    }


def _state(resource: Resource, now: datetime) -> tuple[bool | None, str]:
    """Whether an object is ready, None for kinds without readiness; and its state in words."""
    match resource:
        case DynamoGraphDeployment(status=status):
            return is_ready(resource), status.state or "no status yet"
        case DynamoGraphDeploymentRequest(status=status):
            return is_ready(resource), status.state or "no status yet"
        case DynamoComponentDeployment() | DynamoGraphDeploymentScalingAdapter() | DynamoModel():
            overall = summary(resource)
            is_well = is_ready(resource)
            return is_well, "" if is_well else overall.reason if overall else "no status yet"
        case Pod(status=status):
            state = status.phase
            if blockage := diagnosis.pod_report(resource, now).blockage:
                container = f"container {blockage.container}: " if blockage.container else ""
                message = f": {blockage.message}" if blockage.message else ""
                state = f"{state}; {container}{blockage.word}{message}"
            return None if status.phase == "Succeeded" else diagnosis.is_ready(resource), state
        case Deployment(spec=raw, status=status):
            desired = from_json(raw, DeploymentSpec).replicas
            return deployment_readiness(resource).is_ready, f"{status.ready_replicas}/{desired}"
        case ReplicaSet(spec=spec, status=status):
            return None, f"{status.ready_replicas}/{spec.replicas or 0}"
        case LeaderWorkerSet(spec=raw, status=status):
            ready, desired = status.ready_replicas, from_json(raw, LeaderWorkerSetSpec).replicas
        case PodClique(spec=spec, status=status):
            ready, desired = status.ready_replicas, spec.replicas or 0
        case PodCliqueScalingGroup(spec=spec, status=status):
            ready, desired = status.available_replicas, spec.replicas or 0
        case _:
            return None, ""
    return ready >= desired, f"{ready}/{desired}"


def events_about(
    events: Iterable[Object], uids: frozenset[str], *, only_warnings: bool = False
) -> list[Object]:
    """The Events about objects with these uids, the oldest first. `lastSeen` is RFC 3339, UTC, or ""."""
    shown = []
    for event in events:
        about, series = event.get("involvedObject") or {}, event.get("series") or {}
        if about.get("uid") not in uids or (only_warnings and event.get("type") != "Warning"):
            continue
        times = (
            series.get("lastObservedTime"),
            event.get("lastTimestamp"),
            event.get("eventTime"),
            event["metadata"].get("creationTimestamp"),
        )
        shown.append(
            {
                "name": str(event["metadata"].get("name", "")),
                "lastSeen": str(next(filter(None, times), "")),
                "type": str(event.get("type", "")),
                "reason": str(event.get("reason", "")),
                "object": f"{about.get('kind', '')}/{about.get('name', '')}",
                "count": int(series.get("count") or event.get("count") or 1),
                "message": str(event.get("message", "")),
            }
        )
    return sorted(shown, key=lambda event: str(event["lastSeen"]))
