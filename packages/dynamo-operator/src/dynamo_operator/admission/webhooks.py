"""Builds the webhooks from settings: servers, informers and a readiness probe."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic

from prometheus_client import CollectorRegistry

from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.settings import Settings, WebhookSettings
from dynamo_graphs.types.optional_apis import GROVE, INFERENCE_POOL, InferencePool, withheld_text
from dynamo_graphs.validation.cluster_context import ClusterContext
from dynamo_operator.admission.access_reviews import AccessReviews
from dynamo_operator.admission.ca_bundle import Configuration
from dynamo_operator.admission.certificate_store import CertificateStore, FileStore, kept_in_secret
from dynamo_operator.admission.certificates import Terms
from dynamo_operator.admission.clients import Clients
from dynamo_operator.admission.cross_namespace import CrossNamespace
from dynamo_operator.admission.decision_pool import AT_ONCE, DecisionPool, is_large
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
from kube_runtime.controller.manager import Manager
from kube_runtime.controller.worker import Bounds, WorkerPool
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Key
from kube_runtime.serving.tls import Certificate
from kube_runtime.types.admission import ValidatingWebhookConfiguration
from kube_runtime.types.core import PersistentVolumeClaim
from kube_runtime.types.meta import R

_NOT_OWN_BUNDLE = (
    "a restricted operator may not write the caBundle of a ValidatingWebhookConfiguration, with "
    "which it could intercept requests of the whole cluster: use cert-manager or external, or "
    "disable webhooks"
)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """The server, the processes that validate large objects, and the rotation of the certificate."""

    server: WebhookServer
    workers: WorkerPool
    rotation: CertificateRotation

    def join(self, manager: Manager) -> None:
        """Add them to the manager."""
        manager.serve(self.server)
        manager.serve(self.workers)
        self.rotation.join(manager)


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

    def is_left_to_others(reviewed: str) -> bool:
        # A selector, which may be wrong, chooses what the API server sends.
        return is_excluded(reviewed) or bool(own and reviewed != own)

    informers, store = _certificate_source(client, cache, namespace, chosen)
    circumstances = _circumstances(identity, cache, settings)
    file = Path(chosen.client_ca) if chosen.client_ca else None
    clients = Clients(file, chosen.client_name)
    certificate = Certificate(asks_clients=file is not None)
    access_reviews = AccessReviews(client, are_clients_known=file is not None)
    workers = WorkerPool(Bounds(processes=AT_ONCE))
    rules = rules_of(legacy_kinds=settings.legacy_kinds)
    server = WebhookServer(
        address,
        certificate,
        DecisionPool(workers.submit, circumstances, is_left_to_others, rules),
        WebhookMetrics(registry),
        cross_namespace=None if own else CrossNamespace(access_reviews),
        clients=clients,
    )
    configuration = Configuration(client, cache, chosen.configuration_name)
    rotation = CertificateRotation(
        identity, store, configuration, server, certificate, informers, clients
    )
    return Webhooks(server, workers, rotation)


def _circumstances(
    identity: OperatorIdentity, cache: Cache, settings: Settings
) -> Callable[[Request], Circumstances]:
    """Return the function that gathers the user and the cluster context of a review."""
    shared = shared_names(cache)

    def circumstances(request: Request) -> Circumstances:
        # A large one is validated in a process that does not have the cache.
        gather = copied if is_large(request) else cluster_context
        context = gather(cache, request.namespace, shared)
        return Circumstances(settings.render, request.user_info.username, identity.user, context)

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
    terms = Terms.of_life(timedelta(seconds=chosen.certificate_life_seconds))
    key = Key(namespace, chosen.secret_name)
    secrets, store = kept_in_secret(client, cache, key, chosen.service_name, terms)
    return (configurations, secrets), store


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
        return any(
            model.spec is not None and model.spec.base_model_name == name for model in models
        )


def cluster_context(cache: Cache, namespace: str, shared: SharedNames) -> ClusterContext:
    """The cached state of a namespace, and names that others use; without requests."""
    claims = _Named(cache, PersistentVolumeClaim, namespace)
    return ClusterContext(
        pools_served=cache.serves(InferencePool) if cache.holds(InferencePool) else None,
        pools_withheld=withheld_text(withheld(cache), (INFERENCE_POOL,)),
        grove_served=serves(cache, GROVE),
        claims=claims if cache.serves(PersistentVolumeClaim) else None,
        base_models=_BaseModels(cache, namespace) if cache.serves(DynamoModel) else None,
        foreign_graphs=shared.graphs.outside(namespace),
        foreign_hosts=shared.hosts.outside(namespace),
    )


def copied(cache: Cache, namespace: str, shared: SharedNames) -> ClusterContext:
    """Copy the context into sets of names, for a process without the cache."""
    context = cluster_context(cache, namespace, shared)
    claims = (claim.metadata.name for claim in cache.list(PersistentVolumeClaim, namespace))
    models = (
        model.spec.base_model_name for model in cache.list(DynamoModel, namespace) if model.spec
    )
    return replace(
        context,
        claims=None if context.claims is None else frozenset(claims),
        base_models=None if context.base_models is None else frozenset(models),
        foreign_graphs=frozenset(shared.graphs.outside(namespace)),
        foreign_hosts=frozenset(shared.hosts.outside(namespace)),
    )
