"""The servers: admission webhooks, metrics, probes. Settings switch each of them off."""

from collections.abc import Callable, Sequence

from dynamo_graphs.settings import Settings
from dynamo_operator.admission.identity import OperatorIdentity
from dynamo_operator.admission.webhooks import Webhooks, webhooks
from dynamo_operator.certificates.metrics import metrics_certificate
from dynamo_operator.observability.access import Access
from dynamo_operator.observability.server import (
    METRICS,
    health_server,
    listen_address,
    metrics_server,
)
from dynamo_operator.process.leader import own_namespace
from dynamo_operator.process.scope import Scope
from kube_runtime.cache.cache import Cache
from kube_runtime.client.requests import Client
from kube_runtime.controller.manager import Health, Manager
from kube_runtime.metrics import RuntimeMetrics


def admission(
    identity: OperatorIdentity,
    cache: Cache,
    settings: Settings,
    metrics: RuntimeMetrics,
    scope: Scope,
) -> Webhooks | None:
    """The admission webhooks; None if they are off."""
    chosen = settings.webhooks
    address = listen_address("webhooks.bindAddress", chosen.bind_address)
    if not chosen.enabled or address is None:
        return None
    namespace = own_namespace(chosen.namespace, "webhooks.namespace", "--webhook-namespace")
    hooks = webhooks(
        identity,
        cache,
        metrics.registry,
        address,
        namespace,
        settings,
        is_excluded=scope.is_excluded,
    )
    metrics.observe_certificate("webhooks", lambda: hooks.rotation.certificate.expires)
    return hooks


def serve_probes(
    manager: Manager, settings: Settings, ready: Sequence[Callable[[], Health]]
) -> None:
    """Serve `/healthz` and `/readyz`; ready if no check in `ready` has problems."""

    def all_ready() -> Health:
        return Health(tuple(problem for check in ready for problem in check().problems))

    health = listen_address("health.bindAddress", settings.health.bind_address)
    if health is not None:
        manager.serve(health_server(health, alive=manager.alive, ready=all_ready))


def serve_metrics(
    manager: Manager, client: Client, cache: Cache, settings: Settings, metrics: RuntimeMetrics
) -> None:
    """Serve `/metrics`, by default over TLS and to authorized clients only."""
    chosen = settings.metrics
    address = listen_address("metrics.bindAddress", chosen.bind_address)
    if address is None:
        return
    if not chosen.secure:
        manager.serve(metrics_server(address, metrics.registry))
        return
    namespace = ""
    if chosen.secret_name and not chosen.certificate_folder:
        namespace = own_namespace(
            settings.webhooks.namespace, "webhooks.namespace", "--webhook-namespace"
        )
    rotation = metrics_certificate(chosen, client, cache, namespace)
    rotation.join(manager)
    metrics.observe_certificate("metrics", lambda: rotation.certificate.expires)
    access = Access(client, METRICS) if chosen.access == "reviewed" else None
    manager.serve(
        metrics_server(address, metrics.registry, certificate=rotation.certificate, access=access)
    )
