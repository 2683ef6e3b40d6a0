"""The composition root: builds client, cache, controllers and servers from settings, in one manager."""

import asyncio
import gc
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import structlog

import dynamo_operator
from dynamo_operator import labels
from dynamo_operator.admission.certificates import CertificateRotation, metrics_certificate
from dynamo_operator.admission.webhooks import webhooks
from dynamo_operator.component.controller import ComponentController
from dynamo_operator.component.read import PodIndex, hastens_component
from dynamo_operator.features.scaling.controller import ScalingController
from dynamo_operator.features.ssh_keys import SshKeyController, creates_ssh_keys
from dynamo_operator.graph.controller import GraphController
from dynamo_operator.graph.read import hastens_graph
from dynamo_operator.graph.status import status_events
from dynamo_operator.models.calls import ModelCalls, worker_api
from dynamo_operator.models.controller import STATUS_SECONDS, ModelController
from dynamo_operator.process import observability
from dynamo_operator.process.detection import CONVERTED, StoredVersions
from dynamo_operator.process.scope import Scope, informers, unselected
from dynamo_operator.process.startup import StartupWatch, prepared, until_stopped
from dynamo_operator.requests.controller import RequestController
from dynamo_operator.requests.read import GpuDiscoveryRbac, RequestReader
from dynamo_operator.settings import Settings, listen_address
from dynamo_operator.shared.conditions import SUSPENDED, FailureReasons, GraphState
from dynamo_operator.shared.report import Reporter, ValidationCache, report_refusal
from dynamo_operator.shared.transforms import is_controlled_by_us, is_ours
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.owners import OwnerVersions
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.writer import ManagedFieldsUpgrade, UnselectedObjects, Writer
from kube_runtime.cache.store import Cache
from kube_runtime.client import http
from kube_runtime.client.client import Client, Congestion
from kube_runtime.client.connect import connect, is_own_cluster
from kube_runtime.controller.controller import ControllerOptions
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Health, Manager
from kube_runtime.errors import ConfigError
from kube_runtime.leases import Election, Terms
from kube_runtime.leases import identity as candidate
from kube_runtime.metrics import InstrumentedTransport, RuntimeMetrics
from kube_runtime.types.meta import Key, Resource


@dataclass(frozen=True, slots=True)
class Parts:
    """What controllers share."""

    manager: Manager
    client: Client
    cache: Cache
    writer: Writer
    events: EventWriter
    settings: Settings
    metrics: RuntimeMetrics

    @property
    def options(self) -> ControllerOptions:
        """The options of a controller that no other one feeds."""
        return ControllerOptions(resync_seconds=self.settings.resync_period_seconds)

    def options_reporting(self, type_: type[Resource], reporter: Reporter) -> ControllerOptions:
        """The same for a controller that reports on objects of its kind which of its writes fails."""
        report = partial(report_refusal, type_, self.cache, reporter)
        return replace(self.options, report=report)

    def applier(self) -> Applier:
        """A new applier for the objects of controllers."""
        take_over = ManagedFieldsUpgrade(self.writer, labels.LAST_APPLIED_GENERATION)
        return Applier(self.writer, labels.LAST_APPLIED_HASH, labels.OWNER_GENERATION, take_over)

    def reporter(
        self, component: str, limit: StatusRateLimit, reasons: FailureReasons | None = None
    ) -> Reporter:
        """A reporter for one kind, whose Events name `component` as their source."""
        recorder = self.events.recorder(component)
        return Reporter(self.writer, recorder, limit, self.client, failure_reasons=reasons)


def control_all(parts: Parts, dial: Callable[[str], str] | None) -> None:
    """Reconcile all kinds; those of the older generation if they are enabled. `dial` is for models."""
    pods = control_graphs(parts)
    control_models(parts, dial)
    control_requests(parts)
    if parts.settings.legacy_kinds:
        control = dynamo_operator.older_generation("control")
        cast("Callable[[Parts, PodIndex], None]", control)(parts, pods)


def control_graphs(parts: Parts) -> PodIndex:
    """Reconcile graphs, components, scaling adapters, and SSH keys of multinode components."""
    manager, settings = parts.manager, parts.settings.render
    applier, pods = parts.applier(), PodIndex(parts.cache)
    of_graphs = StatusRateLimit(
        goal="Ready",
        first_at_once=True,
        never_delayed=("restart", "rollingUpdate", SUSPENDED),
        transient_states=(GraphState.INITIALIZING, GraphState.PENDING),
        activity=manager.activity,
    )
    of_components = StatusRateLimit(goal="Available", activity=manager.activity)
    rollouts = observability.RolloutMetrics(parts.metrics.registry)
    component_reporter = parts.reporter("dynamocomponentdeployment", of_components)
    graph_reporter = parts.reporter("dynamographdeployment", of_graphs)
    graph_reporter = replace(graph_reporter, rolled_out=rollouts.written, status_events=status_events)
    writer, cache = parts.writer, parts.cache
    validated = ValidationCache()  # of both kinds
    components = ComponentController(cache, applier, component_reporter, pods, settings, validated)
    graphs = GraphController(writer, cache, applier, graph_reporter, pods, settings, validated)
    # Graphs create components, so they wait while the component controller has a backlog.
    options = parts.options_reporting(components.reconciles, component_reporter)
    options = replace(options, hastens=hastens_component)
    is_ahead = manager.control(components, options).has_backlog
    options = parts.options_reporting(graphs.reconciles, graph_reporter)
    options = replace(options, is_ahead=is_ahead, hastens=hastens_graph(cache))
    wake = manager.control(graphs, options).wake
    failing = (component_reporter.failing.forget, graph_reporter.failing.forget)
    memories = (applier.forget, parts.events.forget, validated.forget, *failing)
    for type_ in dict.fromkeys((*components.owns, *graphs.owns, *graphs.keeps, graphs.reconciles)):
        cache.subscribe_deleted(type_, *memories)
    reporter = parts.reporter("dgdscalingadapter", StatusRateLimit())
    scaling = ScalingController(cache, reporter)
    manager.control(scaling, parts.options_reporting(scaling.reconciles, reporter))
    if creates_ssh_keys(settings):
        keys = SshKeyController(writer, cache, settings, applier.suppression, wake)
        manager.control(keys, parts.options)
    return pods


def control_models(parts: Parts, dial: Callable[[str], str] | None) -> None:
    """Reconcile models. `dial` maps the base URL of a worker to the one to connect to; None: the same."""
    model_settings = parts.settings.models
    calls = ModelCalls(
        partial(worker_api, model_settings.call_timeout_seconds, dial or str),
        silence=lora_disabled_reason(parts.settings, is_dialled=dial is not None),
        at_once=model_settings.calls_at_once,
        may_call=parts.writer.may_write,
        observe=observability.CallMetrics(parts.metrics.registry).called,
    )
    reporter = parts.reporter("dynamomodel", StatusRateLimit(STATUS_SECONDS))
    models = ModelController(parts.cache, reporter, calls)
    options = parts.options_reporting(models.reconciles, reporter)
    calls.wake = parts.manager.control(models, options).wake
    parts.manager.serve(calls)


def control_requests(parts: Parts) -> None:
    """Reconcile DynamoGraphDeploymentRequests."""
    settings = parts.settings.render
    accepts_all = parts.settings.webhooks.graphs_elsewhere
    reader = RequestReader(parts.client, parts.cache, settings, parts.writer.excluded, accepts_all)
    role = settings.dgdr_profiling_nodes_cluster_role_name
    gpu_rbac = GpuDiscoveryRbac(parts.client, parts.writer, parts.cache, role)
    reporter = parts.reporter("dynamographdeploymentrequest", StatusRateLimit())
    requests = RequestController(reader, parts.applier(), gpu_rbac, reporter)
    parts.manager.control(requests, parts.options_reporting(requests.reconciles, reporter))


def lora_disabled_reason(settings: Settings, *, is_dialled: bool) -> str:
    """Why the operator calls no workers; "" if it does."""
    if settings.models.calls == "never":
        return "LoRA calls are off (--model-calls=never)"
    if settings.models.calls == "always" or is_dialled:
        return ""
    if is_own_cluster(Path(settings.kubeconfig) if settings.kubeconfig else None):
        return ""
    return (
        "the operator runs outside the cluster and calls no workers, because pod addresses may "
        "belong to other machines there (--model-calls=always calls them)"
    )


def serve_all(parts: Parts, scope: Scope, leads: Election | None, user: str) -> None:
    """Serve webhooks, probes and metrics. `user` is our user name at the API server."""
    manager, registry = parts.manager, parts.metrics.registry
    observability.register(registry, parts.cache)
    observability.register_scope(registry, lambda: len(scope.excluded), lambda: bool(leads and leads.rival))
    hooks = _admission(parts, scope, user)

    def ready() -> Health:
        problems = [
            *manager.ready(is_converter=bool(hooks)).problems,
            *(hooks.ready().problems if hooks else ()),
        ]
        # With webhooks ready all the same: the API server calls them, and stores nothing without them.
        if leads and leads.rival and not hooks:
            problems.append(f"another installation of the operator leads: {leads.rival}")
        return Health(tuple(problems))

    address = listen_address("health.bindAddress", parts.settings.health.bind_address)
    if address is not None:
        manager.serve(observability.health_server(address, alive=manager.alive, ready=ready))
    _serve_metrics(parts)


def _admission(parts: Parts, scope: Scope, user: str) -> CertificateRotation | None:
    webhook_settings = parts.settings.webhooks
    address = listen_address("webhooks.bindAddress", webhook_settings.bind_address)
    if not webhook_settings.enabled or address is None:
        return None
    hooks = webhooks(
        parts.client,
        user,
        parts.cache,
        parts.metrics.registry,
        address,
        _webhook_namespace(parts.settings),
        parts.settings,
        is_excluded=scope.excluded.__contains__,
    )
    hooks.join(parts.manager)
    parts.metrics.observe_certificate("webhooks", lambda: hooks.certificate.expires)
    return hooks


def _serve_metrics(parts: Parts) -> None:
    settings = parts.settings.metrics
    manager, registry = parts.manager, parts.metrics.registry
    address = listen_address("metrics.bindAddress", settings.bind_address)
    if address is None:
        return
    if not settings.secure:
        manager.serve(observability.metrics_server(address, registry))
        return
    uses_secret = settings.secret_name and not settings.certificate_folder
    namespace = _webhook_namespace(parts.settings) if uses_secret else ""
    rotation = metrics_certificate(settings, parts.client, parts.cache, namespace)
    rotation.join(manager)
    certificate = rotation.certificate
    parts.metrics.observe_certificate("metrics", lambda: certificate.expires)
    is_reviewed = settings.access == "reviewed"
    access = observability.Access(parts.client, observability.METRICS) if is_reviewed else None
    server = observability.metrics_server(address, registry, certificate=certificate, access=access)
    manager.serve(server)


def _webhook_namespace(settings: Settings) -> str:
    return own_namespace(settings.webhooks.namespace, "webhooks.namespace", "--webhook-namespace")


def own_namespace(configured: str, setting: str, flag: str) -> str:
    """The configured namespace, else that of this pod.

    Raises: ConfigError outside a pod.
    """
    if configured:
        return configured
    if http.is_in_cluster(os.environ):
        return http.namespace()
    raise ConfigError(setting, f"is needed outside a pod: {flag}")


_log = structlog.get_logger(__name__)


async def run(settings: Settings, stop: asyncio.Event, *, dial: Callable[[str], str] | None = None) -> None:
    """Reconcile until `stop` is set, then stop in order.

    Raises:
        OperatorError: the cause of the end, in one line.
    """
    kubeconfig = Path(settings.kubeconfig) if settings.kubeconfig else None
    metrics = RuntimeMetrics(prefix=dynamo_operator.METRICS_PREFIX)
    async with await connect(kubeconfig, user_agent=dynamo_operator.user_agent()) as transport:
        measured = InstrumentedTransport(transport, metrics)
        client = Client(Congestion(measured), field_manager=dynamo_operator.FIELD_MANAGER)
        config = await transport.credentials.config()
        starting = prepared(client, settings, config.headers.get("Authorization", ""))
        preparation = await until_stopped(starting, stop, settings)
        if preparation is None:
            return
        settings, scope, user = preparation
        _log.info(
            "connected",
            version=dynamo_operator.version(),
            cluster=config.server.rpartition("@")[2],
            user=user,
            scope=settings.render.restricted_namespace or "all namespaces",
            leader_election=settings.leader_election.enabled,
            webhooks=settings.webhooks.enabled,
        )
        operator = manager(client, settings, metrics, scope, user, dial=dial)
        operator.on_synced(_freeze_long_lived_objects)
        await operator.run(stop)
        await scope.release()


# Each collection would traverse all that exists once the caches are synced, code above all, and the
# event loop stands still meanwhile. Little of what a reconcile leaves behind is cyclic, so with the
# default threshold of 700 objects collections took a tenth of the CPU time of a burst of graphs.
async def _freeze_long_lived_objects() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, *gc.get_threshold()[1:])


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
    events = EventWriter(client, instance=candidate(), metrics=metrics)
    leads = _election(client, settings, user)
    built = Manager(
        client,
        cache,
        metrics=metrics,
        events=events,
        election=leads,
        leases=scope.leases,
        excluded=scope.excluded,
    )
    scope.join(built)
    watched = informers(settings.render, with_legacy_kinds=settings.legacy_kinds)
    for informer in watched:
        built.inform(informer)
    parts = Parts(built, client, cache, built.writer, events, settings, metrics)
    # Looks once, when this process becomes the leader, for objects of ours that no watch selects.
    look = UnselectedObjects(built.writer, selectors=unselected(settings.render), is_ours=is_controlled_by_us)
    built.serve(look, while_leading=True)
    control_all(parts, dial)
    serve_all(parts, scope, leads, user)
    owners = OwnerVersions(built.writer, CONVERTED.values(), is_ours)
    built.serve(owners, while_leading=True)
    built.serve(StoredVersions(client, cache, owners.wake))
    if settings.webhooks.enabled and settings.webhooks.migrates_stored_objects:
        from dynamo_operator.process.migration import StoredObjects

        built.serve(StoredObjects(client, cache), while_leading=True)
    built.serve(StartupWatch([*scope.informers, *watched]))
    return built


def _election(client: Client, settings: Settings, user: str) -> Election | None:
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
