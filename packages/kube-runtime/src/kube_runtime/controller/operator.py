"""An operator by one call, and the names that it imports: what `ctrl` is to controller-runtime."""

import asyncio
import signal
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from kube_runtime.apply.applier import Applier, Controlled, CreateOnly, Shared
from kube_runtime.apply.status import patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client, Congestion
from kube_runtime.client.connect import connect
from kube_runtime.commandline import exit_on_error
from kube_runtime.controller.controller import DONE, Reconciler, Result
from kube_runtime.controller.manager import Manager
from kube_runtime.crd import Field
from kube_runtime.leases import Election, identity
from kube_runtime.schema import custom_resource_definition
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Condition, Key, Kind, Object, Resource, Status, Struct

__all__ = [
    "DONE",
    "Applier",
    "Cache",
    "Client",
    "Condition",
    "ConfigMap",
    "Controlled",
    "CreateOnly",
    "Field",
    "Informer",
    "Key",
    "Kind",
    "Manager",
    "Object",
    "Reconciler",
    "Resource",
    "Result",
    "Shared",
    "Status",
    "Struct",
    "Watches",
    "Writer",
    "build_manager",
    "custom_resource_definition",
    "patch_status",
    "run_operator",
]


def run_operator(
    name: str,
    *reconcilers: Callable[[Manager], Reconciler],
    informers: Iterable[Informer[Any]] = (),
    lease: Key | None = None,
) -> None:
    """Connect, and reconcile until SIGTERM or SIGINT; then stop in order.

    `name` is the field manager and the user agent. `connect` finds the credentials; the other arguments are
    those of `build_manager`. An expected error ends the process with one line and an exit code.
    """
    with exit_on_error():
        build = partial(build_manager, informers=informers, lease=lease)
        asyncio.run(_run_until_signal(name, lambda client: build(client, *reconcilers)))


async def _run_until_signal(name: str, build: Callable[[Client], Manager]) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with await connect(user_agent=name) as transport:
        await build(Client(Congestion(transport), field_manager=name)).run(stop)


def build_manager(
    client: Client,
    *reconcilers: Callable[[Manager], Reconciler],
    informers: Iterable[Informer[Any]] = (),
    lease: Key | None = None,
) -> Manager:
    """Build a manager with a controller for each reconciler.

    The kinds that a reconciler reconciles, owns and watches are watched in all namespaces, but for those of
    `informers`, which may select less. With `lease`, several replicas elect the one that reconciles.
    """
    election = Election(client, lease, identity=identity()) if lease else None
    manager = Manager(client, Cache(), election=election)
    for informer in informers:
        manager.inform(informer)
    for build in reconcilers:
        reconciler = build(manager)
        others = [watch.type_ for watch in reconciler.watches]
        for type_ in (reconciler.reconciles, *reconciler.owns, *others):
            if not manager.cache.holds(type_):
                manager.inform(Informer(type_))
        manager.control(reconciler)
    return manager
