"""The composition root: builds client, cache, controllers and servers from settings, in one manager."""

import asyncio
import gc
from collections.abc import Callable
from pathlib import Path

import structlog

from dynamo_graphs.api import labels
from dynamo_graphs.product import FIELD_MANAGER, METRICS_PREFIX, user_agent, version
from dynamo_graphs.settings import Settings
from dynamo_operator.process.controllers import Parts, control_all
from dynamo_operator.process.informers import informers, unselected
from dynamo_operator.process.scope import Scope
from dynamo_operator.process.servers import own_namespace, serve_all
from dynamo_operator.process.startup import StartupWatch, prepared, until_stopped
from dynamo_operator.reconcile.offload import Offload
from dynamo_operator.reconcile.transforms import is_controlled_by_us
from kube_runtime.apply.unselected import UnselectedObjects
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
from kube_runtime.coordination.leader_election import Election, Terms
from kube_runtime.coordination.leader_election import identity as candidate
from kube_runtime.kind import Key
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.rate_limits import WriteActivity

_log = structlog.get_logger()


async def run(
    settings: Settings, *, stop: asyncio.Event, dial: Callable[[str], str] | None = None
) -> None:
    """Reconcile until `stop` is set, then stop in order.

    `dial` maps the base URL of a worker to the one to connect to, for tests.

    Raises:
        OperatorError: the cause of the end, in one line.
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
        operator = manager(client, settings, metrics, scope, user, dial=dial)
        operator.on_synced(_freeze_long_lived_objects)
        stalls = StallWatch(metrics.stalled)
        operator.on_synced(stalls.start)
        operator.serve(stalls)
        await operator.run(stop)
        await scope.release()


async def _freeze_long_lived_objects() -> None:
    """Exclude what exists once the caches are synced, code above all, from garbage collection.

    Each collection would traverse all of it, and the event loop stands still meanwhile.
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
    """Build everything that runs, without starting it. `user` is our user name at the API server."""
    cache = Cache()
    events = EventWriter(client, instance=candidate(), metrics=metrics, activity=WriteActivity())
    leads = _election(client, settings, user)
    built = Manager(
        client, cache, metrics=metrics, events=events, election=leads, is_excluded=scope.is_excluded
    )
    scope.join(built)
    watched = informers(settings.render, with_legacy_kinds=settings.legacy_kinds)
    for informer in watched:
        built.inform(informer)

    def holds_leases() -> bool:
        return scope.holds_lease() and (leads is None or leads.holds_lease())

    writer = Writer(client, cache, holds_lease=holds_leases, is_excluded=scope.is_excluded)
    workers = WorkerPool()
    built.serve(workers)
    parts = Parts(
        manager=built,
        client=client,
        cache=cache,
        writer=writer,
        events=events,
        settings=settings,
        metrics=metrics,
        holds_lease=lambda namespace: holds_leases() and not scope.is_excluded(namespace),
        offload=Offload(workers, metrics),
    )
    _look_for_unselected(parts)
    control_all(parts, dial)
    serve_all(parts, scope, leads, user)
    built.serve(StartupWatch([*scope.informers, *watched]))
    return built


def _look_for_unselected(parts: Parts) -> None:
    """Look once, when this process becomes the leader, for objects of ours that no watch selects."""
    selectors = unselected(parts.settings.render)
    look = UnselectedObjects(parts.writer, selectors=selectors, is_ours=is_controlled_by_us)
    parts.manager.serve(look, while_leading=True)


def _election(client: Client, settings: Settings, user: str) -> Election | None:
    """The election that this process takes part in; None if leader election is off."""
    election_settings = settings.leader_election
    if not election_settings.enabled:
        return None
    namespace = own_namespace(
        election_settings.namespace, "leaderElection.namespace", "--leader-election-namespace"
    )
    return Election(
        client,
        Key(namespace, election_settings.id),
        identity=candidate(),
        mark=(labels.INSTALLATION, user) if user else None,
        terms=Terms(
            lease_seconds=int(election_settings.lease_duration_seconds),
            deadline_seconds=election_settings.renew_deadline_seconds,
            retry_seconds=election_settings.retry_period_seconds,
        ),
    )
