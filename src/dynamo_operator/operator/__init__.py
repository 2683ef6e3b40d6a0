"""The composition root: settings become a client, a cache, controllers and servers in one manager."""

import asyncio
import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path

from dynamo_operator.admission.identity import Identity
from dynamo_operator.controllers.heavy import Heavy
from dynamo_operator.controllers.scope import Scope
from dynamo_operator.controllers.startup import StartupWatch
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.congestion import Congestion
from dynamo_operator.kube.connect import connect
from dynamo_operator.kube.events import EventWriter
from dynamo_operator.kube.lease import identity as candidate
from dynamo_operator.kube.manager import Manager
from dynamo_operator.kube.measured import Measured
from dynamo_operator.kube.metrics import RuntimeMetrics
from dynamo_operator.kube.pace import Bustle
from dynamo_operator.kube.stall import StallWatch
from dynamo_operator.kube.worker import Workers
from dynamo_operator.kube.writer import Writer
from dynamo_operator.observability import metrics as product_metrics
from dynamo_operator.observability.scope import register as register_scope
from dynamo_operator.operator.controllers import (
    Parts,
    control_graphs,
    control_models,
    control_requests,
)
from dynamo_operator.operator.informers import informers
from dynamo_operator.operator.leader import alone, election
from dynamo_operator.operator.servers import admission, serve_metrics, serve_probes
from dynamo_operator.operator.startup import prepared, until_stopped
from dynamo_operator.settings import Settings


async def run(
    settings: Settings, *, stop: asyncio.Event, dial: Callable[[str], str] | None = None
) -> None:
    """Reconcile until `stop` is set, then stop in order.

    `dial` turns the base URL of a worker into the one that is connected to; it is there for tests.

    Raises:
        OperatorError: what made it end; with one clear line.
    """
    kubeconfig = Path(settings.kubeconfig) if settings.kubeconfig else None
    metrics = RuntimeMetrics()
    async with await connect(kubeconfig) as transport:
        client = Client(Congestion(Measured(transport, metrics)))
        credentials = await transport.credentials.headers()
        starting = prepared(client, settings, credentials.get("Authorization", ""))
        found = await until_stopped(starting, stop, settings)
        if found is None:
            return
        settings, scope, user = found
        built = manager(client, settings, metrics, scope, user, dial=dial)
        built.on_synced(_stop_collecting_what_stays)
        stalls = StallWatch(metrics.stalled)
        built.on_synced(stalls.start)
        built.serve(stalls)
        await built.run(stop)
        await scope.release()


async def _stop_collecting_what_stays() -> None:
    """Keep the garbage collector from what exists once the caches are full: code above all.

    It would look through all of that again and again, and each look stops everything.
    """
    gc.collect()
    gc.freeze()


def manager(
    client: Client,
    settings: Settings,
    metrics: RuntimeMetrics,
    scope: Scope,
    user: str = "",
    *,
    dial: Callable[[str], str] | None = None,
) -> Manager:
    """Everything that runs, put together and not started. `user` is what the API server calls us."""
    cache = Cache()
    bustle = Bustle()  # told by reconciles; Events and statuses go by it
    events = EventWriter(client, instance=candidate(), metrics=metrics, bustle=bustle)
    leads = election(client, settings, user)
    built = Manager(
        client, cache, metrics=metrics, events=events, election=leads, skips=scope.skips
    )
    scope.join(built)
    read = informers(settings.render)
    for each in read:
        built.inform(each)
    may_write = [scope.may_write, *([leads.may_write] if leads else [])]
    writer = Writer(
        client, cache, may_write=lambda: all(each() for each in may_write), skips=scope.skips
    )
    workers = Workers()
    built.serve(workers)
    parts = Parts(
        *(built, client, cache, writer, events, settings, metrics),
        may_write=lambda namespace: (
            all(each() for each in may_write) and not scope.skips(namespace)
        ),
        heavy=Heavy(workers, metrics),
    )
    control_graphs(parts)
    control_models(parts, dial)
    control_requests(parts)
    product_metrics.register(metrics.registry, cache)
    register_scope(metrics.registry, scope.excluded, lambda: bool(leads and leads.rival))
    ready = [built.ready]
    if hooks := admission(Identity(client, user), cache, settings, metrics, scope):
        hooks.join(built)
        ready.append(hooks.ready)
    elif leads:
        ready.append(partial(alone, leads))
    serve_probes(built, settings, ready)
    serve_metrics(built, client, cache, settings, metrics)
    built.serve(StartupWatch([*scope.informers, *read]))
    return built
