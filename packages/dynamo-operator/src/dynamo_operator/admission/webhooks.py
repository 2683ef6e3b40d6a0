"""Build the webhooks from settings: server, certificate and informers."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Generic

import msgspec
from prometheus_client import CollectorRegistry

from dynamo_operator import names
from dynamo_operator.admission.certificates import (
    CertificateRotation,
    CertificateStore,
    FileStore,
    Terms,
    kept_in_secret,
)
from dynamo_operator.admission.configuration import Configuration
from dynamo_operator.admission.decide import ReviewContext, rules_of
from dynamo_operator.admission.definitions import Definitions
from dynamo_operator.admission.review import Decisions, Request
from dynamo_operator.admission.server import AccessReviews, Clients, WebhookMetrics, WebhookServer
from dynamo_operator.component.read import serves, withheld
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.warnings import ClusterContext
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.settings import Settings, WebhookSettings
from dynamo_operator.shared.cluster import GROVE, INFERENCE_POOL, InferencePool, ServingSecret, withheld_text
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import Client
from kube_runtime.errors import ConfigError
from kube_runtime.tls import Certificate
from kube_runtime.types.kinds import Ingress, PersistentVolumeClaim, ValidatingWebhookConfiguration
from kube_runtime.types.meta import Key, R, from_json

_NOT_OWN_BUNDLE = (
    "a restricted operator may not write the caBundle of a ValidatingWebhookConfiguration, with "
    "which it could intercept requests of the whole cluster: use cert-manager or external, or "
    "disable webhooks"
)


def webhooks(
    client: Client,
    user: str,
    cache: Cache,
    registry: CollectorRegistry,
    address: tuple[str | None, int],
    namespace: str,
    settings: Settings,
    is_excluded: Callable[[str], bool],
) -> CertificateRotation:
    """The webhooks and the rotation of their certificate, not started.

    `user` is our user name; "", which matches no user, if it is unknown. `namespace` is that of the Service
    and the Secret. `is_excluded`: whether another operator manages one.

    Raises: ConfigError: a restricted operator may not write a cluster-wide configuration.
    """
    webhook_settings = settings.webhooks
    own = settings.render.restricted_namespace
    if own and webhook_settings.certificates == "self":
        raise ConfigError("webhooks.certificates", _NOT_OWN_BUNDLE)

    def is_managed_by_others(reviewed: str) -> bool:
        # The namespaceSelector of the configuration should exclude it, but may be wrong.
        return is_excluded(reviewed) or bool(own and reviewed != own)

    graphs, hosts = shared_names(cache)

    def context_of(request: Request) -> ReviewContext:
        context = cluster_context(cache, request.namespace, graphs, hosts)
        return ReviewContext(settings.render, request.user_info.username, user, context)

    file = Path(webhook_settings.client_ca) if webhook_settings.client_ca else None
    access_reviews = AccessReviews(client, are_clients_known=file is not None)
    server = WebhookServer(
        address,
        Certificate(asks_clients=file is not None),
        Decisions(context_of, is_managed_by_others, rules_of(legacy_kinds=settings.legacy_kinds)),
        WebhookMetrics(registry),
        access_reviews=None if own else access_reviews,
        clients=Clients(file, webhook_settings.client_name),
    )
    configuration = Configuration(client, cache, webhook_settings.configuration_name)
    informers, store = _certificate_source(client, cache, namespace, webhook_settings)
    definitions = Definitions(client, cache, configuration)
    return CertificateRotation(store, configuration, definitions, server, informers)


def _certificate_source(
    client: Client, cache: Cache, namespace: str, settings: WebhookSettings
) -> tuple[tuple[Informer[Any], ...], CertificateStore]:
    fields = f"metadata.name={settings.configuration_name}"
    configurations = Informer(ValidatingWebhookConfiguration, fields=fields)
    if settings.certificates != "self":
        return (configurations,), FileStore(Path(settings.certificate_folder))
    terms = Terms.of_life(timedelta(seconds=settings.certificate_life_seconds))
    key = Key(namespace, settings.secret_name)
    secrets, store = kept_in_secret(ServingSecret, client, cache, key, settings.service_name, terms)
    return (configurations, secrets), store


class _Rule(msgspec.Struct):
    host: str = ""


class _Spec(msgspec.Struct):
    rules: tuple[_Rule, ...] = ()


class Owners(Generic[R]):
    """The namespaces of objects by the names that they use, kept up to date from the cache."""

    def __init__(self, cache: Cache, type_: type[R], claims: Callable[[R], Iterable[str]]) -> None:
        self._claims = claims
        self._namespaces: dict[str, Counter[str]] = {}
        if cache.holds(type_):
            cache.subscribe(type_, self._on_change)

    def _on_change(self, change: Change[R]) -> None:
        for state, by in ((change.old, -1), (change.new, 1)):
            if state is None:
                continue
            for name in self._claims(state):
                namespaces = self._namespaces.pop(name, Counter[str]())
                namespaces[state.metadata.namespace] += by
                if left := +namespaces:  # those with a positive count
                    self._namespaces[name] = left

    def outside(self, namespace: str) -> "Names":
        """The names that other namespaces use."""

        def is_used(name: str) -> bool:
            namespaces = self._namespaces.get(name, ())
            return len(namespaces) > (namespace in namespaces)

        return Names(is_used)


@dataclass(frozen=True, slots=True)
class Names:
    """Names that are looked up on demand."""

    has: Callable[[str], bool]

    def __contains__(self, name: object) -> bool:
        return self.has(str(name))


def shared_names(cache: Cache) -> tuple[Owners[DynamoGraphDeployment], Owners[Ingress]]:
    """The indices of Dynamo namespaces and of Ingress hosts."""
    graphs = Owners(cache, DynamoGraphDeployment, lambda graph: (names.dynamo_namespace(*graph.key),))
    return graphs, Owners(cache, Ingress, _hosts)


def _hosts(ingress: Ingress) -> frozenset[str]:
    try:
        rules = from_json(ingress.spec, _Spec).rules
    except msgspec.DecodeError:
        return frozenset()  # the API server stores no such Ingress
    return frozenset(rule.host for rule in rules if rule.host)


def cluster_context(
    cache: Cache, namespace: str, graphs: Owners[DynamoGraphDeployment], hosts: Owners[Ingress]
) -> ClusterContext:
    """The cached state of a namespace, and names that other namespaces use."""

    def is_claim(name: str) -> bool:
        return cache.get(PersistentVolumeClaim, Key(namespace, name)) is not None

    def is_base_model(name: str) -> bool:
        models = cache.list(DynamoModel, namespace)
        return any(model.spec is not None and model.spec.base_model_name == name for model in models)

    return ClusterContext(
        pools_served=cache.serves(InferencePool) if cache.holds(InferencePool) else None,
        pools_withheld=withheld_text(withheld(cache), (INFERENCE_POOL,)),
        grove_served=serves(cache, GROVE),
        claims=Names(is_claim) if cache.serves(PersistentVolumeClaim) else None,
        base_models=Names(is_base_model) if cache.serves(DynamoModel) else None,
        foreign_graphs=graphs.outside(namespace),
        foreign_hosts=hosts.outside(namespace),
    )
