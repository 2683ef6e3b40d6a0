"""The operator is killed before and after each of its writes and calls; the next one comes to the same end.

Every point of every scenario is played, on a simulated API server with simulated workers. The dead neither
write nor call: whatever it still tries is cut off.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import pytest

from dynamo_operator.models.plan import Call, Reply
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import Unreachable
from simulated.clock import run
from simulated.models import URI, Cluster

FOREVER = 10**6
EVENTS = "/events"


class Mortal(Cluster):
    """A cluster whose operator dies at a chosen moment, counted from 1. 0 means: it does not.

    Odd moments are before, even ones after a write or a call took effect.
    """

    def __init__(self, dies_at: int) -> None:
        super().__init__()
        self.dies_at = dies_at
        self.moments = 0
        self.is_counting = False
        self.died = asyncio.Event()
        self.life = 0

    def transport(self) -> "Line":
        """What one life of the operator talks to the API server through."""
        return Line(self, self.life)

    async def passes(self, life: int) -> None:
        """One moment passes; returns unless the operator is dead."""
        if life == self.life and self.is_counting and not self.died.is_set():
            self.moments += 1
            if self.moments == self.dies_at:
                self.died.set()
        if life != self.life or self.died.is_set():
            await asyncio.sleep(FOREVER)

    async def call(self, address: str, call: Call, timeout_seconds: float | None = None) -> Reply:
        life = self.life
        await self.passes(life)
        reply = await super().call(address, call, timeout_seconds)
        await self.passes(life)
        return reply

    @asynccontextmanager
    async def mortal(self) -> AsyncIterator[None]:
        """An operator that may die; it is not stopped in order."""
        task = asyncio.create_task(self._live())
        await asyncio.sleep(10)
        try:
            yield
        finally:
            self.life += 1
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _live(self) -> None:
        async with self.operator(self.transport()):
            await asyncio.sleep(FOREVER)


@dataclass(frozen=True)
class Line:
    """The way of one operator to the API server."""

    cluster: Mortal
    life: int

    async def send(self, request: Request) -> Answer:
        """Answer, or never."""
        if self.life != self.cluster.life:
            raise Unreachable("the operator is dead")
        counts = request.method != "GET" and EVENTS not in request.path
        if counts:
            await self.cluster.passes(self.life)
        answer = await self.cluster.server.send(request)
        if counts:
            await self.cluster.passes(self.life)
        return answer


@dataclass(frozen=True)
class Scenario:
    """What a user does to a model that is loaded into two pods, unless it `begins` it.

    `then` are the user's changes while no operator runs, `loaded` is what the workers have in the end: two of
    the base model, and one of another.
    """

    name: str
    act: Callable[[Mortal], None]
    loaded: tuple[dict[str, str], dict[str, str], dict[str, str]]
    begins: bool = False
    then: Callable[[Mortal], None] | None = None

    def __str__(self) -> str:
        return self.name


NEW = {"uri": "s3://vault/new"}
OLD_LOADED, NEW_LOADED = {"legal-v2": URI}, {"legal-v2": NEW["uri"]}
NOTHING: tuple[dict[str, str], dict[str, str], dict[str, str]] = ({}, {}, {})
SCENARIOS = (
    Scenario("create", lambda cluster: cluster.has_model(), (OLD_LOADED, OLD_LOADED, {}), begins=True),
    Scenario("another address", lambda cluster: cluster.edit(source=NEW), (NEW_LOADED, NEW_LOADED, {})),
    Scenario(
        "another name",
        lambda cluster: cluster.edit(modelName="legal-v3"),
        ({"legal-v3": URI}, {"legal-v3": URI}, {}),
    ),
    Scenario(
        "another base model", lambda cluster: cluster.edit(baseModelName="orion/other"), ({}, {}, OLD_LOADED)
    ),
    Scenario("delete", lambda cluster: cluster.delete(), NOTHING),
    Scenario(
        "create, then another address",
        lambda cluster: cluster.has_model(),
        (NEW_LOADED, NEW_LOADED, {}),
        begins=True,
        then=lambda cluster: cluster.edit(source=NEW),
    ),
    Scenario(
        "another address, then the old one again",
        lambda cluster: cluster.edit(source=NEW),
        (OLD_LOADED, OLD_LOADED, {}),
        then=lambda cluster: cluster.edit(source={"uri": URI}),
    ),
    Scenario(
        "another name, then deleted",
        lambda cluster: cluster.edit(modelName="legal-v3"),
        NOTHING,
        then=lambda cluster: cluster.delete(),
    ),
)


async def play(scenario: Scenario, dies_at: int) -> tuple[int, tuple[object, ...]]:
    """How many moments there were, and how it ended."""
    cluster = Mortal(dies_at)
    cluster.has_pods(2)
    cluster.has_pods(1, first=10, base="orion/other")
    if not scenario.begins:
        cluster.has_model()
    async with cluster.mortal():
        await asyncio.sleep(20)
        cluster.is_counting = True
        scenario.act(cluster)
        await asyncio.sleep(60)
    cluster.is_counting = False
    cluster.died.clear()
    if scenario.then is not None:
        scenario.then(cluster)
    async with cluster.mortal():
        await asyncio.sleep(120)
    loaded = [each.loaded for each in cluster.workers.values()]
    if cluster.model() is None:
        return cluster.moments, (tuple(loaded), None)
    kept = ("address", "ready", "loadedName", "loadedURI", "leftovers", "triedName", "reloading")
    ends = [{name: each.get(name) for name in kept} for each in cluster.status().get("endpoints", [])]
    return cluster.moments, (
        tuple(loaded),
        ends,
        cluster.condition(),
        cluster.status().get("formerEndpoints"),
    )


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_whenever_it_is_killed_the_end_is_the_same(scenario: Scenario) -> None:
    async def every() -> None:
        moments, expected = await play(scenario, 0)
        assert moments >= 6, "it is about something"
        assert scenario.loaded == expected[0]
        for dies_at in range(1, moments + 1):
            _, end = await play(scenario, dies_at)
            assert expected == end, f"killed at moment {dies_at} of {moments}"

    run(every())
