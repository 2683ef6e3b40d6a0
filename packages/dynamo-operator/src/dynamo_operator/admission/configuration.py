"""Our entries in the ValidatingWebhookConfiguration: which kinds they send us, and the CA bundles in them.

The operator writes only `caBundle`, entry by entry, with server-side apply: whatever else an installer or a
GitOps tool sets in the configuration stays as it is.
"""

import base64
from dataclasses import dataclass
from urllib.parse import urlsplit

import structlog

from dynamo_operator.component.api import GROUP, VERSION, DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.types.kinds import ValidatingWebhookConfiguration, Webhook, WebhookClient
from kube_runtime.types.meta import Key, Kind, Resource


def service_host(namespace: str, service: str) -> str:
    """The host name by which the API server calls a Service."""
    return f"{service}.{namespace}.svc"


REVIEWED: tuple[type[Resource], ...] = (
    DynamoComponentDeployment,
    DynamoGraphDeployment,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)
"""The reviewed kinds, in the order of the entries."""

LEGACY_REVIEWED: tuple[Kind, ...] = tuple(
    Kind(GROUP, VERSION, name, f"{name.lower()}s")
    for name in ("DynamoDeployment", "DynamoNimDeployment", "DynamoNimRequest")
)
"""The reviewed kinds of the older generation, whose entries follow. Their types are not imported here."""


def path_of(kind: Kind) -> str:
    """The URL path of a kind's reviews."""
    group = kind.group.replace(".", "-")
    return f"/validate-{group}-{kind.version}-{kind.name.lower()}"


def entry_name(kind: Kind) -> str:
    """The name of a kind's entry, which denials contain."""
    return f"v{kind.name.lower()}.kb.io"


_OURS = frozenset(entry_name(kind) for kind in (*(type_.KIND for type_ in REVIEWED), *LEGACY_REVIEWED))
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The cached configuration of that name."""

    client: Client
    cache: Cache
    name: str

    def entries(self) -> tuple[Webhook, ...] | None:
        """Our entries; None if the configuration does not exist."""
        configuration = self.cache.get(ValidatingWebhookConfiguration, Key("", self.name))
        if configuration is None:
            return None
        return tuple(entry for entry in configuration.webhooks if entry.name in _OURS)

    def callers(self) -> frozenset[tuple[str, str]]:
        """How the API server calls our entries: the host name, and the CA bundle ("": the system's CAs)."""
        return frozenset(
            (host_of(entry.client_config), entry.client_config.ca_bundle) for entry in self.entries() or ()
        )

    def addresses(self) -> frozenset[str]:
        """Where the API server calls our entries: a host name, with the port of a URL."""
        return frozenset(address_of(entry.client_config) for entry in self.entries() or ())

    def trusts(self, authorities: bytes) -> bool:
        """Whether each of our entries has this CA bundle."""
        entries = self.entries() or ()
        bundle = base64.b64encode(authorities).decode()
        return bool(entries) and all(entry.client_config.ca_bundle == bundle for entry in entries)

    async def trust(self, authorities: bytes) -> None:
        """Write the CA bundle into our entries, unless all have it."""
        configuration = self.cache.get(ValidatingWebhookConfiguration, Key("", self.name))
        entries = self.entries()
        if configuration is None or not entries or self.trusts(authorities):
            return
        bundle = base64.b64encode(authorities).decode()
        ours = [{"name": entry.name, "clientConfig": {"caBundle": bundle}} for entry in entries]
        desired = configuration.KIND.manifest({"name": self.name}, webhooks=ours)
        uid = configuration.metadata.uid
        await self.client.apply(ValidatingWebhookConfiguration, desired, force=True, uid=uid)
        _log.info("wrote the webhook CA bundles", configuration=self.name)


def host_of(client: WebhookClient) -> str:
    """The host name by which the API server calls a webhook."""
    if client.service is not None:
        return service_host(client.service.namespace, client.service.name)
    return urlsplit(client.url).hostname or ""


def address_of(client: WebhookClient) -> str:
    """The same with the port of a URL, which tells servers on one host apart."""
    return host_of(client) if client.service is not None else urlsplit(client.url).netloc
