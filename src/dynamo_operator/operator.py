"""The composition root: settings become a client, a cache, controllers and servers in one manager."""

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dynamo_operator.admission.webhooks import Webhooks, webhooks
from dynamo_operator.api import labels
from dynamo_operator.api.component import GROUP, VERSION, DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.controllers.component import ComponentController
from dynamo_operator.controllers.foreign import OPERATOR, reduced_unless_ours
from dynamo_operator.controllers.gather import registries_only
from dynamo_operator.controllers.graph import GraphController
from dynamo_operator.controllers.pods import SELECTOR as POD_SELECTOR
from dynamo_operator.controllers.pods import PodIndex
from dynamo_operator.controllers.pods import reduced as reduced_pod
from dynamo_operator.controllers.scaling import ScalingController
from dynamo_operator.controllers.scope import Scope, scope_of
from dynamo_operator.controllers.ssh_keys import ssh_key_informers
from dynamo_operator.controllers.ssh_source import SshSourceController, makes_ssh_source
from dynamo_operator.controllers.startup import StartupWatch
from dynamo_operator.kube import in_cluster
from dynamo_operator.kube.apply import Applier
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import Client
from dynamo_operator.kube.connect import connect
from dynamo_operator.kube.errors import ConfigError, NotFound
from dynamo_operator.kube.events import EventWriter
from dynamo_operator.kube.informer import Informer
from dynamo_operator.kube.kind import Key
from dynamo_operator.kube.lease import Election, Terms, identity
from dynamo_operator.kube.manager import Health, Manager
from dynamo_operator.kube.measured import Measured
from dynamo_operator.kube.metrics import RuntimeMetrics
from dynamo_operator.kube.optional import Definitions, OptionalInformer
from dynamo_operator.kube.shared import SharedApplier
from dynamo_operator.kube.status import StatusPace
from dynamo_operator.kube.takeover import TakeOver
from dynamo_operator.kube.types.apps import Deployment, StatefulSet
from dynamo_operator.kube.types.core import (
    ConfigMap,
    PersistentVolumeClaim,
    Pod,
    PullSecret,
    Service,
    ServiceAccount,
)
from dynamo_operator.kube.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_operator.kube.types.inference import InferencePool
from dynamo_operator.kube.types.istio import VirtualService
from dynamo_operator.kube.types.kai import Queue
from dynamo_operator.kube.types.leaderworkerset import SET_NAME, LeaderWorkerSet
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.kube.types.networking import Ingress
from dynamo_operator.kube.types.policy import PodDisruptionBudget
from dynamo_operator.kube.types.rbac import Role, RoleBinding
from dynamo_operator.kube.types.volcano import PodGroup
from dynamo_operator.kube.writer import Writer
from dynamo_operator.observability import metrics as product_metrics
from dynamo_operator.observability.scope import register as register_scope
from dynamo_operator.observability.server import health_server, listen_address, metrics_server
from dynamo_operator.settings import LeaderElectionSettings, Settings

_RECONCILED: tuple[type[Resource], ...] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentScalingAdapter,
)
_CHILDREN: tuple[type[Resource], ...] = (
    ServiceAccount,
    Role,
    RoleBinding,
    Service,
    Ingress,
    Deployment,
    PodDisruptionBudget,
    PersistentVolumeClaim,
)
_OPTIONAL: tuple[type[Resource], ...] = (
    LeaderWorkerSet,
    PodGroup,
    PodCliqueSet,
    PodClique,
    PodCliqueScalingGroup,
    Queue,
    InferencePool,
    VirtualService,
)
"""Kinds of other projects, used while they are installed."""


async def run(settings: Settings, *, stop: asyncio.Event) -> None:
    """Reconcile until `stop` is set, then stop in order.

    Raises:
        OperatorError: what made it end; with one clear line.
    """
    kubeconfig = Path(settings.kubeconfig) if settings.kubeconfig else None
    metrics = RuntimeMetrics()
    async with await connect(kubeconfig) as transport:
        client = Client(Measured(transport, metrics))
        await require_definitions(client)
        scope = scope_of(client, settings)
        await scope.claim()
        await manager(client, settings, metrics, scope).run(stop)
        await scope.release()


async def require_definitions(client: Client) -> None:
    """Return when our kinds are served.

    Raises:
        ConfigError: they are not installed.
        OperatorError: the API server could not be asked.
    """
    try:
        await client.get_json(f"/apis/{GROUP}/{VERSION}")
    except NotFound:
        advice = (
            f"the kinds of {GROUP}/{VERSION} are not installed; "
            "run: dynamoctl crds | kubectl apply --server-side -f -"
        )
        raise ConfigError("API server", advice) from None


def manager(client: Client, settings: Settings, metrics: RuntimeMetrics, scope: Scope) -> Manager:
    """Everything that runs, put together and not started."""
    cache = Cache()
    events = EventWriter(client, instance=identity(), metrics=metrics)
    election = _election(client, settings)
    built = Manager(
        client, cache, metrics=metrics, events=events, election=election, skips=scope.skips
    )
    scope.join(built)
    informers = [
        *_informers(settings.render.restricted_namespace),
        *ssh_key_informers(settings.render),
    ]
    for informer in informers:
        built.inform(informer)
    pods = PodIndex(cache)
    may_write = [scope.may_write, *([election.may_write] if election else [])]
    writer = Writer(
        client, cache, may_write=lambda: all(each() for each in may_write), skips=scope.skips
    )
    take_over = TakeOver(client, writer, labels.LAST_APPLIED_GENERATION)
    applier = Applier(client, writer, cache, labels.LAST_APPLIED_HASH, take_over)
    # Recorder names and markers of shared objects. Source: specification `controllers` 1.3, 1.9, 1.13.
    for type_, name, marker in (
        (GraphController, "dynamographdeployment", labels.APP_MANAGED_BY),
        (ComponentController, "dynamocomponentdeployment", labels.MANAGED_BY),
    ):
        built.control(
            type_(
                writer=writer,
                cache=cache,
                applier=applier,
                shared=SharedApplier(writer, cache, (marker, OPERATOR), take_over),
                recorder=events.recorder(name),
                pace=StatusPace(),
                pods=pods,
                settings=settings.render,
            )
        )
    recorder = events.recorder("dgdscalingadapter")
    built.control(ScalingController(client, writer, cache, recorder, StatusPace()))
    if makes_ssh_source(settings.render):
        built.control(SshSourceController(writer, cache, settings.render))
    product_metrics.register(metrics.registry, cache)
    register_scope(metrics.registry, scope.excluded)
    ready = [built.ready]
    if hooks := _webhooks(client, cache, settings, metrics, scope):
        hooks.join(built)
        ready.append(hooks.ready)
    _serve(built, settings, metrics, ready)
    built.serve(StartupWatch([*scope.informers, *informers]))
    return built


def _informers(namespace: str) -> list[Informer[Any]]:
    """One per type that is read; in a restricted namespace, of that namespace only."""
    reconciled = [Informer(each, namespace=namespace) for each in _RECONCILED]
    children = [Informer(each, namespace=namespace, keep=reduced_unless_ours) for each in _CHILDREN]
    secrets = Informer(
        PullSecret,
        namespace=namespace,
        fields="type=kubernetes.io/dockerconfigjson",
        keep=registries_only,
    )
    # ConfigMaps are many and large; ours are those of components.
    configs = Informer(ConfigMap, namespace=namespace, labels=labels.COMPONENT)
    pods = Informer(Pod, namespace=namespace, labels=POD_SELECTOR, keep=reduced_pod)
    leaders = Informer(StatefulSet, namespace=namespace, labels=SET_NAME)
    definitions = Definitions()
    optional = [OptionalInformer(each, definitions, namespace=namespace) for each in _OPTIONAL]
    return [*reconciled, *children, secrets, configs, pods, leaders, definitions, *optional]


def _election(client: Client, settings: Settings) -> Election | None:
    chosen = settings.leader_election
    if not chosen.enabled:
        return None
    return Election(
        client,
        Key(_election_namespace(chosen), chosen.id),
        identity=identity(),
        terms=Terms(
            lease_seconds=int(chosen.lease_duration_seconds),
            deadline_seconds=chosen.renew_deadline_seconds,
            retry_seconds=chosen.retry_period_seconds,
        ),
    )


def _election_namespace(chosen: LeaderElectionSettings) -> str:
    return _own_namespace(
        chosen.namespace, "leaderElection.namespace", "--leader-election-namespace"
    )


def _own_namespace(chosen: str, setting: str, flag: str) -> str:
    """The namespace that was chosen, else that of this pod."""
    if chosen:
        return chosen
    if in_cluster.is_in_cluster(os.environ):
        return in_cluster.namespace()
    raise ConfigError(setting, f"is needed outside a pod: {flag}")


def _webhooks(
    client: Client, cache: Cache, settings: Settings, metrics: RuntimeMetrics, scope: Scope
) -> Webhooks | None:
    """The admission webhooks. None means: they are off."""
    chosen = settings.webhooks
    address = listen_address("webhooks.bindAddress", chosen.bind_address)
    if not chosen.enabled or address is None:
        return None
    namespace = _own_namespace(chosen.namespace, "webhooks.namespace", "--webhook-namespace")
    return webhooks(
        client, cache, metrics.registry, address, namespace, settings, skips=scope.skips
    )


def _serve(
    built: Manager,
    settings: Settings,
    metrics: RuntimeMetrics,
    ready: Sequence[Callable[[], Health]],
) -> None:
    def all_ready() -> Health:
        return Health(tuple(problem for each in ready for problem in each().problems))

    health = listen_address("health.bindAddress", settings.health.bind_address)
    if health is not None:
        built.serve(health_server(health, alive=built.alive, ready=all_ready))
    scrape = listen_address("metrics.bindAddress", settings.metrics.bind_address)
    if scrape is not None:
        is_secure = settings.metrics.secure
        built.serve(metrics_server(scrape, metrics.registry, is_secure=is_secure))
