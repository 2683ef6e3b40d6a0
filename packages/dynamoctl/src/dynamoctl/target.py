"""The cluster of a command line, and the object in it that a command is about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic

from cyclopts import CycloptsError

from dynamo_graphs.product import user_agent
from dynamoctl.cluster_options import Where
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.resource_args import NAME, NOUNS, S, named
from kube_runtime.client.connect import connect, default_namespace
from kube_runtime.errors import ApiError, Forbidden, NotFound, OperatorError
from kube_runtime.kind import Key, Kind
from kube_runtime.types.meta import Resource


class Missing(OperatorError):
    """There is no such object, no such kind of object, or no such part of it."""


class _Namespace(Resource):
    """A namespace; only whether it exists matters."""

    KIND = Kind("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that answers requests, and the namespace of the command line or of the context."""

    reading: Reading
    namespace: str


@dataclass(frozen=True, slots=True)
class Target(Generic[S]):
    """The object, and how it is read."""

    reading: Reading
    type_: type[S]
    key: Key

    async def found(self) -> S:
        """The object.

        Raises:
            Missing: it is not there; with similar names, or that the namespace does not exist.
        """
        try:
            return await self.reading.client.get(self.type_, self.key)
        except NotFound as error:
            if (error.details or {}).get("name") == self.key.name:
                hint = await self._hint()
                raise Missing(f"{self.missing()}{hint}") from None
            raise not_served(self.type_) from None

    def missing(self) -> Missing:
        """That the object is not there."""
        return Missing(
            f"{NOUNS[self.type_]} {self.key.name} not found in namespace {self.key.namespace}"
        )

    async def _hint(self) -> str:
        """What the user may have meant; "" if nothing is similar, or the user may not know."""
        from dynamo_graphs.validation.syntax import nearest

        name, namespace = self.key.name, self.key.namespace
        text = await absent_namespace(self.reading, namespace)
        try:
            every = await self.reading.all(self.type_, namespace="")
        except Forbidden:
            try:
                every = [] if text else await self.reading.all(self.type_, namespace=namespace)
            except Forbidden:
                every = []
        beside = sorted({it.metadata.name for it in every if it.metadata.namespace == namespace})
        elsewhere = [str(it.key) for it in every if it.metadata.name == name]
        if elsewhere:
            return f"{text}; there is {', '.join(sorted(elsewhere)[:3])}"
        return f"{text}{nearest(name, beside)}"


def not_served(type_: type[Resource]) -> Missing:
    """That the cluster has no such kind."""
    return Missing(f"{type_.KIND} is not served; `dynamoctl check` reports what is")


async def absent_namespace(reading: Reading, namespace: str) -> str:
    """`: namespace NAME does not exist`; "" if it exists or the user may not ask."""
    try:
        if await reading.one(_Namespace, Key("", namespace)) is None:
            return f": namespace {namespace} does not exist"
    except ApiError:  # the answer that asked for this hint is reported either way
        return ""
    return ""


@asynccontextmanager
async def cluster(where: Where) -> AsyncIterator[Cluster]:
    """The cluster of a command line, with a connection that is closed afterwards.

    Raises:
        CycloptsError: the namespace cannot be one; it would be another path of the API server's URL.
        OperatorError: there are no usable credentials.
    """
    if where.namespace and not NAME.fullmatch(where.namespace):
        raise CycloptsError(
            f"invalid namespace {where.namespace!r} (expected a name, for example prod)"
        )
    async with await connect(
        where.kubeconfig, where.context or None, user_agent=user_agent()
    ) as transport:
        yield Cluster(Reading(transport), where.namespace or await default_namespace(transport))


@asynccontextmanager
async def place(name: str, where: Where, types: tuple[type[S], ...]) -> AsyncIterator[Target[S]]:
    """Where the object of that name is, with a connection that is closed afterwards.

    Raises: CycloptsError; OperatorError.
    """
    type_, plain = named(name, types)
    async with cluster(where) as found:
        yield Target(found.reading, type_, Key(found.namespace, plain))
