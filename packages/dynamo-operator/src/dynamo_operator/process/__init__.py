"""The composition root: settings become a client, a cache, controllers and servers in one manager."""

import asyncio
import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog

from dynamo_graphs.product import FIELD_MANAGER, METRICS_PREFIX, user_agent, version
from dynamo_graphs.settings import Settings
from dynamo_operator.admission.identity import OperatorIdentity
from dynamo_operator.observability.metrics import register, register_scope
from dynamo_operator.process.controllers import (
    Parts,
    control_graphs,
    control_legacy_kinds,
    control_models,
    control_requests,
)
from dynamo_operator.process.informers import informers
from dynamo_operator.process.leader import election, leader_health, look_for_unselected
from dynamo_operator.process.scope import Scope
from dynamo_operator.process.servers import admission, serve_metrics, serve_probes
from dynamo_operator.process.startup import StartupWatch, prepared, until_stopped
from dynamo_operator.reconcile.offload import Offload
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.client.congestion import Congestion
from kube_runtime.client.connect import connect
from kube_runtime.client.instrumented import InstrumentedTransport
from kube_runtime.client.requests import Client
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.controller.stall import StallWatch
from kube_runtime.controller.worker_pool import WorkerPool
from kube_runtime.coordination.leader_election import identity as candidate
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.rate_limits import WriteActivity

_log = structlog.get_logger()


async def run(
    settings: Settings, *, stop: asyncio.Event, dial: Callable[[str], str] | None = None
) -> None:
    """Reconcile until `stop` is set, then stop in order.

    `dial` turns the base URL of a worker into the one that is connected to; it is there for tests.

    Raises:
        OperatorError: what made it end; with one clear line.
    """
    kubeconfig = Path(settings.kubeconfig) if settings.kubeconfig else None
    metrics = RuntimeMetrics(prefix=METRICS_PREFIX)
    async with await connect(kubeconfig, user_agent=user_agent()) as transport:
        measured = InstrumentedTransport(transport, metrics)
        client = Client(Congestion(measured), field_manager=FIELD_MANAGER)
        config = await transport.credentials.config()
        starting = prepared(client, settings, config.headers.get("Authorization", ""))
        preparation = await until_stopped(starting, stop, settings)
        if preparation is None:
            return
        settings, scope, user = preparation
        _log.info(
            "connected",
            version=version(),
            cluster=config.server.rpartition("@")[2],
            user=user,
            scope=settings.render.restricted_namespace or "all namespaces",
            leader_election=settings.leader_election.enabled,
            webhooks=settings.webhooks.enabled,
        )
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
    events = EventWriter(client, instance=candidate(), metrics=metrics, activity=WriteActivity())
    leads = election(client, settings, user)
    built = Manager(
        client, cache, metrics=metrics, events=events, election=leads, is_excluded=scope.is_excluded
    )
    scope.join(built)
    read = informers(settings.render, with_legacy_kinds=settings.legacy_kinds)
    for informer in read:
        built.inform(informer)

    def holds_leases() -> bool:
        return scope.holds_lease() and (leads is None or leads.holds_lease())

    writer = Writer(client, cache, holds_lease=holds_leases, is_excluded=scope.is_excluded)
    look_for_unselected(built, writer, settings.render)
    workers = WorkerPool()
    built.serve(workers)
    parts = Parts(
        *(built, client, cache, writer, events, settings, metrics),
        holds_lease=lambda namespace: holds_leases() and not scope.is_excluded(namespace),
        offload=Offload(workers, metrics),
    )
    control_legacy_kinds(parts, control_graphs(parts))
    control_models(parts, dial)
    control_requests(parts)
    register(metrics.registry, cache)
    register_scope(metrics.registry, scope.excluded, lambda: bool(leads and leads.rival))
    ready = [built.ready]
    if hooks := admission(OperatorIdentity(client, user), cache, settings, metrics, scope):
        hooks.join(built)
        ready.append(hooks.rotation.ready)
    elif leads:
        ready.append(partial(leader_health, leads))
    serve_probes(built, settings, ready)
    serve_metrics(built, client, cache, settings, metrics)
    built.serve(StartupWatch([*scope.informers, *read]))
    return built
