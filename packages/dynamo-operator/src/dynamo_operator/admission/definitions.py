"""The CRDs whose objects we convert: how the API server calls us for that, and the CA bundles in them.

A CRD is ours to write to if its `spec.conversion` names the address of our entries in the
ValidatingWebhookConfiguration: the Service, or host and port of a URL. Only its `spec.conversion` is
written; a CRD without a webhook there, or with that of others, stays as it is.
"""

import base64
from typing import Any, Final

import msgspec
import structlog

from dynamo_operator.admission.configuration import Configuration, address_of, host_of
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from kube_runtime.cache.store import Cache, Handler
from kube_runtime.client.client import Client
from kube_runtime.errors import NotFound
from kube_runtime.types.kinds import CustomResourceDefinition, WebhookClient
from kube_runtime.types.meta import Key, Object, Resource, Struct, from_plain

CONVERTED: Final[tuple[type[Resource], ...]] = (
    DynamoGraphDeployment,
    DynamoComponentDeployment,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentScalingAdapter,
)
"""The kinds with two versions."""

_NAMES: Final = tuple(str(type_.KIND) for type_ in CONVERTED)

_log = structlog.get_logger(__name__)


class _Spec(Struct):
    conversion: dict[str, Any] = {}


class ConvertedDefinition(Resource):
    """A CRD without its schemas: what it says of conversion."""

    KIND = CustomResourceDefinition.KIND

    spec: _Spec = _Spec()

    @property
    def client(self) -> WebhookClient | None:
        """How the API server calls the webhook; None if none converts."""
        webhook = self.spec.conversion.get("webhook")
        if not isinstance(webhook, dict):
            return None
        try:
            return from_plain(webhook.get("clientConfig"), WebhookClient)
        except msgspec.ValidationError:
            return None  # the API server stores no such CRD


class Definitions:
    """The CRDs that exist, read again when the watched metadata of one changes."""

    def __init__(self, client: Client, cache: Cache, configuration: Configuration) -> None:
        self._client = client
        self._cache = cache
        self._configuration = configuration
        self._read: dict[str, ConvertedDefinition] = {}
        self._applied: dict[str, Object] = {}
        self._has_logged = False

    def subscribe(self, handler: Handler[CustomResourceDefinition]) -> None:
        """Call the handler for each change of a CRD."""
        if self._cache.holds(CustomResourceDefinition):
            self._cache.subscribe(CustomResourceDefinition, handler)

    # The watch of all CRDs has their metadata only: with schemas they have megabytes.
    async def refresh(self) -> None:
        """Read those that have changed.

        Raises: OperatorError: one could not be read.
        """
        for name in _NAMES if self._cache.holds(CustomResourceDefinition) else ():
            present = self._cache.get(CustomResourceDefinition, Key("", name))
            known = self._read.get(name)
            if present is None:
                self._read.pop(name, None)
            elif known is None or known.metadata.generation != present.metadata.generation:
                try:
                    key = Key("", name)
                    self._read[name] = await self._client.get(ConvertedDefinition, key)
                except NotFound:
                    self._read.pop(name, None)
        if self._read and not self._has_logged:
            self._has_logged = True
            converted = [definition.metadata.name for definition, _ in self._ours()]
            others = sorted(self._read.keys() - converted)
            _log.info("conversion between versions", definitions=converted, not_by_us=others)

    def callers(self) -> frozenset[tuple[str, str]]:
        """How the API server calls us: the host name, and the CA bundle ("": the system's CAs)."""
        return frozenset((host_of(client), client.ca_bundle) for _, client in self._ours())

    def is_behind(self) -> bool:
        """Whether one has changed since it was read."""
        if not self._cache.holds(CustomResourceDefinition):
            return False
        present = {name: self._cache.get(CustomResourceDefinition, Key("", name)) for name in _NAMES}
        return any(
            name not in self._read or self._read[name].metadata.generation < definition.metadata.generation
            for name, definition in present.items()
            if definition is not None
        )

    def trusts(self, authorities: bytes) -> bool:
        """Whether each conversion by us has this CA bundle."""
        bundle = base64.b64encode(authorities).decode()
        return all(client.ca_bundle == bundle for _, client in self._ours())

    # All of `spec.conversion` is applied, as it was read: with only the CA bundle of ours left in it, a CRD
    # with one version could not be applied afterwards.
    async def trust(self, authorities: bytes) -> None:
        """Write the CA bundle into each conversion by us, unless this process has.

        Raises: OperatorError, such as Conflict: a CRD has changed since it was read.
        """
        bundle = base64.b64encode(authorities).decode()
        for definition, client in self._ours():
            conversion = _trusting(definition.spec.conversion, bundle)
            if client.ca_bundle == bundle and self._applied.get(definition.metadata.name) == conversion:
                continue  # otherwise fields that others have changed since are not applied by us
            name, version = definition.metadata.name, definition.metadata.resource_version
            metadata = {"name": name, "resourceVersion": version}
            desired = definition.KIND.manifest(metadata, spec={"conversion": conversion})
            uid = definition.metadata.uid
            self._read.pop(name)  # it has changed, or is written now
            written = await self._client.apply(ConvertedDefinition, desired, force=True, uid=uid)
            self._read[name], self._applied[name] = written, conversion
            _log.info("wrote the CA bundle of conversions", definition=name)

    def _ours(self) -> list[tuple[ConvertedDefinition, WebhookClient]]:
        addresses = self._configuration.addresses()
        found = ((definition, definition.client) for definition in self._read.values())
        return [
            (definition, client) for definition, client in found if client and address_of(client) in addresses
        ]


def _trusting(conversion: Object, bundle: str) -> Object:
    webhook = conversion["webhook"]
    client = {**webhook["clientConfig"], "caBundle": bundle}
    return {**conversion, "webhook": {**webhook, "clientConfig": client}}
