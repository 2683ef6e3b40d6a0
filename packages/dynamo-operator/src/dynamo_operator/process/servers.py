"""The servers: admission webhooks, metrics, probes. Settings switch each of them off."""

import os
from collections.abc import Callable, Sequence
from functools import partial

from dynamo_operator.admission.identity import OperatorIdentity
from dynamo_operator.admission.webhooks import Webhooks, webhooks
from dynamo_operator.certificates.metrics import metrics_certificate
from dynamo_operator.observability.access import Access
from dynamo_operator.observability.metrics import register, register_scope
from dynamo_operator.observability.server import (
    METRICS,
    health_server,
    listen_address,
    metrics_server,
)
from dynamo_operator.process.controllers import Parts
from dynamo_operator.process.scope import Scope
from kube_runtime.client import in_cluster
from kube_runtime.controller.manager import Health
from kube_runtime.coordination.leader_election import Election
from kube_runtime.errors import ConfigError


def serve_all(parts: Parts, scope: Scope, leads: Election | None, user: str) -> None:
    """Serve webhooks, probes and metrics. `user` is our user name at the API server."""
    manager, registry = parts.manager, parts.metrics.registry
    register(registry, parts.cache)
    register_scope(registry, scope.excluded, lambda: bool(leads and leads.rival))
    ready: list[Callable[[], Health]] = [manager.ready]
    if hooks := _admission(parts, scope, user):
        hooks.join(manager)
        ready.append(hooks.rotation.ready)
    elif leads:
        ready.append(partial(_leader_health, leads))
    _serve_probes(parts, ready)
    _serve_metrics(parts)


def _admission(parts: Parts, scope: Scope, user: str) -> Webhooks | None:
    """The admission webhooks; None if they are off."""
    webhook_settings = parts.settings.webhooks
    address = listen_address("webhooks.bindAddress", webhook_settings.bind_address)
    if not webhook_settings.enabled or address is None:
        return None
    hooks = webhooks(
        OperatorIdentity(parts.client, user),
        parts.cache,
        parts.metrics.registry,
        address,
        own_namespace(webhook_settings.namespace, "webhooks.namespace", "--webhook-namespace"),
        parts.settings,
        is_excluded=scope.is_excluded,
    )
    parts.metrics.observe_certificate("webhooks", lambda: hooks.rotation.certificate.expires)
    return hooks


def _serve_probes(parts: Parts, ready: Sequence[Callable[[], Health]]) -> None:
    """Serve `/healthz` and `/readyz`; ready if no check in `ready` has problems."""

    def all_ready() -> Health:
        return Health(tuple(problem for check in ready for problem in check().problems))

    address = listen_address("health.bindAddress", parts.settings.health.bind_address)
    if address is not None:
        parts.manager.serve(health_server(address, alive=parts.manager.alive, ready=all_ready))


def _serve_metrics(parts: Parts) -> None:
    """Serve `/metrics`, by default over TLS and to authorized clients only."""
    metrics_settings = parts.settings.metrics
    manager, registry = parts.manager, parts.metrics.registry
    address = listen_address("metrics.bindAddress", metrics_settings.bind_address)
    if address is None:
        return
    if not metrics_settings.secure:
        manager.serve(metrics_server(address, registry))
        return
    namespace = ""
    if metrics_settings.secret_name and not metrics_settings.certificate_folder:
        namespace = own_namespace(
            parts.settings.webhooks.namespace, "webhooks.namespace", "--webhook-namespace"
        )
    rotation = metrics_certificate(metrics_settings, parts.client, parts.cache, namespace)
    rotation.join(manager)
    parts.metrics.observe_certificate("metrics", lambda: rotation.certificate.expires)
    access = Access(parts.client, METRICS) if metrics_settings.access == "reviewed" else None
    manager.serve(
        metrics_server(address, registry, certificate=rotation.certificate, access=access)
    )


def _leader_health(election: Election) -> Health:
    """Not ready while another installation leads.

    Not used with webhooks: the API server calls them, and stores nothing without them.
    """
    rival = election.rival
    return Health((f"another installation of the operator leads: {rival}",) if rival else ())


def own_namespace(configured: str, setting: str, flag: str) -> str:
    """The configured namespace, else that of this pod.

    Raises: ConfigError outside a pod.
    """
    if configured:
        return configured
    if in_cluster.is_in_cluster(os.environ):
        return in_cluster.namespace()
    raise ConfigError(setting, f"is needed outside a pod: {flag}")
