"""The cluster of a command line, and the object that a command is about: `chat` or `dgd/chat`."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from cyclopts import CycloptsError

from dynamo_operator import labels, names, user_agent
from dynamo_operator.component.api import ComponentSpec, DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.cluster import (
    SET_NAME,
    InferencePool,
    LeaderWorkerSet,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    PodGroup,
    VirtualService,
)
from dynamo_operator.shared.conditions import Stated
from dynamoctl.installation.cluster_reader import Reading, stored_type
from dynamoctl.options import Where
from kube_runtime.client.client import Client
from kube_runtime.client.connect import connect, default_namespace
from kube_runtime.errors import ApiError, Forbidden, NotFound, OperatorError
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.kinds import (
    ConfigMap,
    Deployment,
    EndpointSlice,
    Ingress,
    PersistentVolumeClaim,
    Pod,
    PodDisruptionBudget,
    ReplicaSet,
    Role,
    RoleBinding,
    Service,
    ServiceAccount,
    StatefulSet,
)
from kube_runtime.types.meta import Resource

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


# A namespace may have the pods of a hundred graphs, so each kind is listed by its labels. Objects
# of Grove and PVCs have none of our labels: there are few of them, and they are listed completely.
# Kinds of other projects are listed only where they are served.
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


S = TypeVar("S", bound=Stated)

NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?")
"""A name that the API server accepts."""

GRAPHS = (DynamoGraphDeployment,)
STATED: tuple[type[Stated], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)

NOUNS: Mapping[type[Resource], str] = {
    DynamoGraphDeployment: "graph",
    DynamoComponentDeployment: "component",
    DynamoGraphDeploymentScalingAdapter: "scaling adapter",
    DynamoModel: "model",
    DynamoGraphDeploymentRequest: "request",
}


def parse_object(text: str, types: tuple[type[S], ...]) -> tuple[type[S], str]:
    """The type and the name in `NAME` or `KIND/NAME`; without a kind, the first of the types.

    Raises:
        CycloptsError: it is another kind, or not a name.
    """
    kind, slash, name = text.rpartition("/")
    if not NAME.fullmatch(name) or "/" in kind or (slash and not kind):
        raise CycloptsError(
            f'invalid name "{text}" (expected NAME or KIND/NAME, for example dgd/chat)'
        )
    if not slash:
        return types[0], name
    return type_named(kind, types), name


def parse_service(text: str) -> tuple[str, str]:
    """The graph and the service of `GRAPH/SERVICE` or `dgd/GRAPH/SERVICE`; "" as service of a graph alone.

    Raises: CycloptsError.
    """
    kind, _, rest = text.partition("/")
    target = rest if rest and kind.lower() in _names(DynamoGraphDeployment) else text
    graph, slash, service = target.partition("/")
    if not NAME.fullmatch(graph) or (slash and not service):
        raise CycloptsError(
            f'invalid target "{text}" (expected GRAPH or GRAPH/SERVICE, for example chat/Decode)'
        )
    return graph, service


def service_of(graph: DynamoGraphDeployment, name: str) -> ComponentSpec:
    """The service of that name.

    Raises:
        Missing: the graph has none; the message names those that it has.
    """
    from dynamo_operator.shared.problems import nearest

    services = graph.spec.services
    if name not in services:
        listing = f" (services: {', '.join(sorted(services))})" if services else ""
        hint = nearest(name, services) or listing
        raise Missing(f'graph {graph.key}: service "{name}" not found{hint}')
    return services[name]


def type_named(kind: str, types: tuple[type[S], ...]) -> type[S]:
    """The type by any name that kubectl accepts for its kind.

    Raises: CycloptsError.
    """
    chosen = next((type_ for type_ in types if kind.lower() in _names(type_)), None)
    if chosen is None:
        names = [type_.DEFINITION.short_names[0] for type_ in types]
        expected = f"one of {', '.join(names)}" if len(names) > 1 else names[0]
        raise CycloptsError(f'unsupported kind "{kind}" (expected {expected})')
    return chosen


def _names(type_: Any) -> set[str]:
    kind, definition = type_.KIND, type_.DEFINITION
    full = {kind.name.lower(), kind.plural}
    grouped = {
        f"{name}{version}.{kind.group}" for name in full for version in ("", f".{kind.version}")
    }
    return {*definition.short_names, *full, *grouped}


class Missing(OperatorError):
    """An object, its kind, or a part of it does not exist."""


class Namespace(Resource):
    """A namespace; only whether it exists matters."""

    KIND = Kind("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A connected cluster, and the namespace of the command line or of the context."""

    reading: Reading
    namespace: str


@dataclass(frozen=True, slots=True)
class Target(Generic[S]):
    """An object of a cluster: its type and key."""

    reading: Reading
    type_: type[S]
    key: Key

    async def get(self) -> S:
        """The object.

        Raises:
            Missing: it does not exist; the message suggests similar names or names a missing namespace.
        """
        try:
            return await self.reading.client.get(self.type_, self.key)
        except NotFound as error:
            if (error.details or {}).get("name") == self.key.name:
                hint = await self._hint()
                raise Missing(f"{self.missing()}{hint}") from None
            raise not_served(self.type_) from None

    async def raw(self) -> Object:
        """The object as it is stored.

        Raises: Missing, as `get`.
        """
        body = await self.reading.raw(self.type_.KIND, self.key)
        if body is None:
            await self.get()  # raises with a hint
            raise self.missing()
        return body

    def missing(self) -> Missing:
        """The error for an object that does not exist."""
        return Missing(
            f"{NOUNS[self.type_]} {self.key.name} not found in namespace {self.key.namespace}"
        )

    async def _hint(self) -> str:
        """A hint at what the user may have meant; "" if nothing is similar or visible to the user."""
        from dynamo_operator.shared.problems import nearest

        name, namespace = self.key.name, self.key.namespace
        kind = stored_type(self.type_.KIND)
        text = await absent_namespace(self.reading, namespace)
        try:
            every = await self.reading.all(kind, namespace="")
        except Forbidden:
            try:
                every = [] if text else await self.reading.all(kind, namespace=namespace)
            except Forbidden:
                every = []
        beside = sorted({it.metadata.name for it in every if it.metadata.namespace == namespace})
        elsewhere = [str(it.key) for it in every if it.metadata.name == name]
        if elsewhere:
            return f"{text}; there is {', '.join(sorted(elsewhere)[:3])}"
        return f"{text}{nearest(name, beside)}"


def not_served(type_: type[Resource]) -> Missing:
    """The error for a kind that the cluster does not serve."""
    return Missing(f"{type_.KIND} is not served; `dynamoctl check` reports what is")


async def absent_namespace(reading: Reading, namespace: str) -> str:
    """`: namespace NAME does not exist`; "" if it exists or the user may not read it."""
    try:
        if await reading.one(Namespace, Key("", namespace)) is None:
            return f": namespace {namespace} does not exist"
    except ApiError:  # only a hint; the error that led here is reported either way
        return ""
    return ""


def namespace_in_words(namespace: str) -> str:
    """A namespace in words; "" is any namespace."""
    return f"namespace {namespace}" if namespace else "any namespace"


@asynccontextmanager
async def cluster(where: Where) -> AsyncIterator[Cluster]:
    """Connect to the cluster of a command line.

    Raises:
        CycloptsError: the namespace is not a valid name.
        OperatorError: there are no usable credentials.
    """
    if where.namespace and not NAME.fullmatch(where.namespace):
        raise CycloptsError(
            f'invalid namespace "{where.namespace}" (expected a name, for example prod)'
        )
    async with await connect(
        where.kubeconfig, where.context or None, user_agent=user_agent()
    ) as transport:
        yield Cluster(Reading(transport), where.namespace or await default_namespace(transport))


@asynccontextmanager
async def target_of(
    name: str, where: Where, types: tuple[type[S], ...]
) -> AsyncIterator[Target[S]]:
    """Connect to the cluster of the object with that name.

    Raises: CycloptsError; OperatorError.
    """
    type_, plain = parse_object(name, types)
    async with cluster(where) as at:
        yield Target(at.reading, type_, Key(at.namespace, plain))
