"""An object that a command is about, and the cluster that it is in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic

from dynamo_graphs.product import user_agent
from dynamoctl.cluster_options import Where
from dynamoctl.explanation import NOUNS
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.resource_args import S, named
from kube_runtime.client.connect import connect, default_namespace
from kube_runtime.errors import NotFound, OperatorError
from kube_runtime.kind import Key


class Missing(OperatorError):
    """There is no such object, no such kind of object, or no such part of it."""


@dataclass(frozen=True, slots=True)
class Target(Generic[S]):
    """The object, and how it is read."""

    reading: Reading
    type_: type[S]
    key: Key

    async def found(self) -> S:
        """The object.

        Raises:
            Missing: it is not there.
        """
        try:
            return await self.reading.client.get(self.type_, self.key)
        except NotFound as error:
            if (error.details or {}).get("name") == self.key.name:
                raise self.missing() from None
            kind = self.type_.KIND
            raise Missing(f"{kind} is not served; `dynamoctl check` reports what is") from None

    def missing(self) -> Missing:
        """That the object is not there."""
        return Missing(
            f"{NOUNS[self.type_]} {self.key.name} not found in namespace {self.key.namespace}"
        )


@asynccontextmanager
async def place(name: str, where: Where, types: tuple[type[S], ...]) -> AsyncIterator[Target[S]]:
    """Where the object of that name is, with a connection that is closed afterwards.

    Raises: CycloptsError; OperatorError.
    """
    type_, plain = named(name, types)
    async with await connect(
        where.kubeconfig, where.context or None, user_agent=user_agent()
    ) as transport:
        namespace = where.namespace or await default_namespace(transport)
        yield Target(Reading(transport), type_, Key(namespace, plain))
