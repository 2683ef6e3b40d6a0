"""A controller of widgets whose reconciles follow a script of the test."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache, Store
from kube_runtime.controller.controller import DONE, Controller, ControllerOptions, Result
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import Deployment, ServiceAccount
from kube_runtime.types.meta import Key, Kind, Metadata, Resource
from simulated.caches import listed


class Widget(Resource):
    KIND = Kind("example.com", "v1", "Widget", "widgets")

    size: int = 0


A, B = Key("ns", "a"), Key("ns", "b")


def widget(key: Key, size: int = 0) -> Widget:
    """A widget whose version is its size."""
    version = str(size)
    return Widget(Metadata(key.name, key.namespace, f"uid-{key.name}", version), size)


def account_keys(account: ServiceAccount) -> Iterable[Key]:
    """The widgets that a ServiceAccount names in its labels."""
    return (Key("ns", name) for name in account.metadata.labels)


Script = Callable[[], Awaitable[Result]]


@dataclass
class WidgetController:
    """Follows the script of each key, one entry per reconcile, and succeeds after its end."""

    runs: list[tuple[float, Key]] = field(default_factory=list[tuple[float, Key]])
    script: dict[Key, Iterator[Result | Exception | Script]] = field(
        default_factory=lambda: defaultdict(lambda: iter(()))
    )
    active: int = 0
    most_active: int = 0

    reconciles: ClassVar[type[Resource]] = Widget
    owns: ClassVar[tuple[type[Resource], ...]] = (Deployment,)
    watches = (Watches(ServiceAccount, account_keys),)

    async def reconcile(self, key: Key) -> Result:
        self.runs.append((asyncio.get_running_loop().time(), key))
        self.active += 1
        self.most_active = max(self.active, self.most_active)
        try:
            match next(self.script[key], DONE):
                case Exception() as error:
                    raise error
                case Result() as outcome:
                    return outcome
                case script:
                    return await script()
        finally:
            self.active -= 1

    def keys(self) -> list[Key]:
        return [key for _, key in self.runs]

    def gaps(self) -> list[float]:
        times = [at for at, _ in self.runs]
        return [later - earlier for earlier, later in pairwise(times)]


class World:
    """A controller of widgets, and the stores that feed it."""

    def __init__(self, pace: ControllerOptions, *, is_subscribed: bool = True) -> None:
        self.controller = WidgetController()
        self.widgets, self.children = Store(Widget), Store(Deployment)
        self.accounts = Store(ServiceAccount)
        self.metrics = RuntimeMetrics()
        cache = Cache((self.widgets, self.children, self.accounts))
        self.runner = Controller(self.controller, cache, metrics=self.metrics, options=pace)
        if is_subscribed:
            self.runner.subscribe()

    def list(self, *widgets: Widget) -> None:
        """Sync the store with these widgets."""
        listed(self.widgets, Widget, widgets)

    def sample(self, name: str, **labels: str) -> float:
        return self.metrics.registry.get_sample_value(f"kube_runtime_{name}", labels) or 0.0


PACE = ControllerOptions(workers=2, resync_seconds=100_000)


@asynccontextmanager
async def running(pace: ControllerOptions = PACE, world: World | None = None) -> AsyncIterator[World]:
    """Run the controller until the end of the block."""
    world = world or World(pace)
    run = asyncio.create_task(world.runner.run())
    yield world
    assert not run.done()
    world.runner.close()
    await run
