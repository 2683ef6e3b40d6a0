"""Builds the webhooks from settings: servers, informers and a readiness probe."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic

from prometheus_client import CollectorRegistry

from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.optional_apis import GROVE, INFERENCE_POOL, withheld_text
from dynamo_graphs.settings import Settings, WebhookSettings
from dynamo_graphs.types.inference import InferencePool
from dynamo_graphs.validation.cluster_context import ClusterContext
from dynamo_operator.admission.access_reviews import AccessReviews
from dynamo_operator.admission.ca_bundle import Configuration
from dynamo_operator.admission.certificate_store import CertificateStore, FileStore, SecretStore
from dynamo_operator.admission.certificates import Terms
from dynamo_operator.admission.clients import Clients
from dynamo_operator.admission.cross_namespace import CrossNamespace
from dynamo_operator.admission.decision_pool import AT_ONCE, DecisionPool, is_large
from dynamo_operator.admission.hosts import hosts_of
from dynamo_operator.admission.identity import OperatorIdentity
from dynamo_operator.admission.metrics import WebhookMetrics
from dynamo_operator.admission.review import Request
from dynamo_operator.admission.rotation import CertificateRotation
from dynamo_operator.admission.rules import Circumstances, rules_of
from dynamo_operator.admission.server import WebhookServer
from dynamo_operator.admission.shared_names import SharedNames, shared_names
from dynamo_operator.reconcile.read import serves, withheld
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer
from kube_runtime.client.requests import Client
from kube_runtime.controller.manager import Health, Manager, Server
from kube_runtime.controller.worker import Bounds, WorkerPool
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Key
from kube_runtime.serving.tls import Certificate
from kube_runtime.types.admission import ServingSecret, ValidatingWebhookConfiguration
from kube_runtime.types.core import PersistentVolumeClaim
from kube_runtime.types.meta import R

_NOT_OWN_BUNDLE = (
    "a restricted operator may not write the caBundle of a ValidatingWebhookConfiguration, with "
    "which it could intercept requests of the whole cluster: use cert-manager or external, or "
    "disable webhooks"
)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Servers and hooks for the manager, and the readiness probe."""

    informers: tuple[Informer[Any], ...]
    servers: tuple[Server, ...]
    synced: Callable[[], Awaitable[None]]
    ready: Callable[[], Health]
    certificate: Certificate

    def join(self, manager: Manager) -> None:
        """Add them to the manager."""
        for informer in self.informers:
            manager.inform(informer)
        for server in self.servers:
            manager.serve(server)
        manager.on_synced(self.synced)


def webhooks(
    identity: OperatorIdentity,
    cache: Cache,
    registry: CollectorRegistry,
    address: tuple[str | None, int],
    namespace: str,
    settings: Settings,
    is_excluded: Callable[[str], bool],
) -> Webhooks:
    """The webhooks, not started. `namespace` is that of the Service and the Secret.

    `is_excluded` returns whether another operator manages a namespace.

    Raises:
        ConfigError: a restricted operator may not write a cluster-wide configuration.
    """
    client, chosen = identity.client, settings.webhooks
    own = settings.render.restricted_namespace
    if own and chosen.certificates == "self":
        raise ConfigError("webhooks.certificates", _NOT_OWN_BUNDLE)

    def is_left_to_others(asked: str) -> bool:
        # A selector, which may be wrong, chooses what the API server sends.
        return is_excluded(asked) or bool(own and asked != own)

    informers, keeper = _certificate_source(client, cache, namespace, chosen)
    circumstances = _circumstances(identity, cache, settings)
    file = Path(chosen.client_ca) if chosen.client_ca else None
    clients = Clients(file, chosen.client_name)
    certificate = Certificate(asks_clients=file is not None)
    questions = AccessReviews(client, are_clients_known=file is not None)
    workers = WorkerPool(Bounds(processes=AT_ONCE))
    rules = rules_of(legacy_kinds=settings.legacy_kinds)
    server = WebhookServer(
        address,
        certificate,
        DecisionPool(workers.submit, circumstances, is_left_to_others, rules),
        WebhookMetrics(registry),
        elsewhere=None if own else CrossNamespace(questions),
        clients=clients,
    )
    configuration = Configuration(client, cache, chosen.configuration_name)
    upkeep = CertificateRotation(
        identity, keeper, configuration, server, certificate, informers, clients
    )
    servers = (server, workers, upkeep)
    return Webhooks(informers, servers, upkeep.synced, upkeep.ready, certificate)


def _circumstances(
    identity: OperatorIdentity, cache: Cache, settings: Settings
) -> Callable[[Request], Circumstances]:
    """Return the function that gathers the user and the cluster context of a review."""
    taken = shared_names(cache)

    def circumstances(request: Request) -> Circumstances:
        around = cluster_context(cache, request.namespace, taken)
        if is_large(request):  # validated in a process that does not have the cache
            around = copied(cache, request.namespace, taken)
        return Circumstances(settings.render, request.user_info.username, identity.user, around)

    return circumstances


def _certificate_source(
    client: Client, cache: Cache, namespace: str, chosen: WebhookSettings
) -> tuple[tuple[Informer[Any], ...], CertificateStore]:
    """The informers of the configuration and the Secret, and the certificate store."""
    configurations = Informer(
        ValidatingWebhookConfiguration, fields=f"metadata.name={chosen.configuration_name}"
    )
    if chosen.certificates != "self":
        return (configurations,), FileStore(Path(chosen.certificate_folder))
    secrets = Informer(
        ServingSecret, namespace=namespace, fields=f"metadata.name={chosen.secret_name}"
    )
    keeper = SecretStore(
        client,
        cache,
        Key(namespace, chosen.secret_name),
        hosts_of(namespace, chosen.service_name),
        Terms.of_life(timedelta(seconds=chosen.certificate_life_seconds)),
    )
    return (configurations, secrets), keeper


@dataclass(frozen=True, slots=True)
class _Named(Generic[R]):
    """The names of objects in a namespace, looked up on demand."""

    cache: Cache
    type_: type[R]
    namespace: str

    def __contains__(self, name: object) -> bool:
        return self.cache.get(self.type_, Key(self.namespace, str(name))) is not None


@dataclass(frozen=True, slots=True)
class _BaseModels:
    """The base models of the DynamoModels in a namespace."""

    cache: Cache
    namespace: str

    def __contains__(self, name: object) -> bool:
        models = self.cache.list(DynamoModel, self.namespace)
        return any(each.spec is not None and each.spec.base_model_name == name for each in models)


def cluster_context(cache: Cache, namespace: str, taken: SharedNames) -> ClusterContext:
    """The cached state of a namespace, and names that others use; without requests."""
    claims = _Named(cache, PersistentVolumeClaim, namespace)
    return ClusterContext(
        pools_served=cache.serves(InferencePool) if cache.holds(InferencePool) else None,
        pools_withheld=withheld_text(withheld(cache), (INFERENCE_POOL,)),
        grove_served=serves(cache, GROVE),
        claims=claims if cache.serves(PersistentVolumeClaim) else None,
        base_models=_BaseModels(cache, namespace) if cache.serves(DynamoModel) else None,
        foreign_graphs=taken.graphs.outside(namespace),
        foreign_hosts=taken.hosts.outside(namespace),
    )


def copied(cache: Cache, namespace: str, taken: SharedNames) -> ClusterContext:
    """Copy the context into sets of names, for a process without the cache."""
    known = cluster_context(cache, namespace, taken)
    claims = (each.metadata.name for each in cache.list(PersistentVolumeClaim, namespace))
    models = (each.spec.base_model_name for each in cache.list(DynamoModel, namespace) if each.spec)
    return replace(
        known,
        claims=None if known.claims is None else frozenset(claims),
        base_models=None if known.base_models is None else frozenset(models),
        foreign_graphs=frozenset(taken.graphs.names_outside(namespace)),
        foreign_hosts=frozenset(taken.hosts.names_outside(namespace)),
    )
