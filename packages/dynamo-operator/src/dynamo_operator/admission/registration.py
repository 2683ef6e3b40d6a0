"""The ValidatingWebhookConfiguration: which requests are reviewed, and by which endpoint.

Written once here for the chart, for `dynamoctl install` and for tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dynamo_graphs.api.component import GROUP, VERSION, DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from kube_runtime.kind import Kind, Object
from kube_runtime.types.admission import ValidatingWebhookConfiguration
from kube_runtime.types.meta import Resource

REVIEWED: tuple[type[Resource], ...] = (
    DynamoComponentDeployment,
    DynamoGraphDeployment,
    DynamoModel,
    DynamoGraphDeploymentRequest,
)
"""The kinds with a webhook, in the order of the entries."""

LEGACY_REVIEWED: tuple[Kind, ...] = tuple(
    Kind(GROUP, VERSION, name, f"{name.lower()}s")
    for name in ("DynamoDeployment", "DynamoNimDeployment", "DynamoNimRequest")
)
"""Those of the older generation, whose entries come after them. Their types are not imported here."""

LABELS: Mapping[str, str] = {
    "app.kubernetes.io/component": "webhook",
    "app.kubernetes.io/created-by": "dynamo-operator",
    "app.kubernetes.io/part-of": "dynamo-operator",
}
_LONGEST = 63
FailurePolicy = Literal["Fail", "Ignore"]


@dataclass(frozen=True, slots=True)
class Registration:
    """Parameters of an installation.

    `restricted_namespace` "" means: the whole cluster; else no `selector` of the user selects another
    namespace. `url` is for an operator outside the cluster, as `https://127.0.0.1:9443`. With
    `legacy_kinds`, those of the older generation are reviewed too.
    """

    release: str
    namespace: str
    restricted_namespace: str = ""
    failure_policy: FailurePolicy = "Fail"
    timeout_seconds: int = 10
    selector: Object = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    ca_bundle: str = ""
    url: str = ""
    legacy_kinds: bool = False

    @property
    def name(self) -> str:
        """The name of the configuration."""
        name = f"{full_name(self.release)}-validating"
        return f"{name}-{self.restricted_namespace}" if self.restricted_namespace else name

    @property
    def service(self) -> str:
        """The name of the Service in front of the operators."""
        return service_name(self.release)


def full_name(release: str) -> str:
    """The name prefix of a release's objects."""
    full = release if "dynamo-operator" in release else f"{release}-dynamo-operator"
    return full[:_LONGEST].rstrip("-")


def service_name(release: str) -> str:
    """The name of the Service in front of the webhooks of a release."""
    return f"{full_name(release)}-webhook-service"


def path_of(kind: Kind) -> str:
    """The URL path of a kind's reviews."""
    group = kind.group.replace(".", "-")
    return f"/validate-{group}-{kind.version}-{kind.name.lower()}"


def entry_name(kind: Kind) -> str:
    """The name of a kind's entry, which refusals show."""
    return f"v{kind.name.lower()}.kb.io"


def registration(wanted: Registration) -> Object:
    """The ValidatingWebhookConfiguration as JSON."""
    metadata: Object = {"name": wanted.name, "labels": {**LABELS, **wanted.labels}}
    if wanted.annotations:
        metadata["annotations"] = dict(wanted.annotations)
    kind = ValidatingWebhookConfiguration.KIND
    kinds = (*(each.KIND for each in REVIEWED), *(LEGACY_REVIEWED if wanted.legacy_kinds else ()))
    return {
        "apiVersion": kind.api_version,
        "kind": kind.name,
        "metadata": metadata,
        "webhooks": [_entry(each, wanted) for each in kinds],
    }


def _entry(kind: Kind, wanted: Registration) -> Object:
    entry: Object = {
        "name": entry_name(kind),
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(kind, wanted),
        "failurePolicy": wanted.failure_policy,
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [kind.plural],
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": wanted.timeout_seconds,
    }
    if selector := _selector(wanted):
        entry["namespaceSelector"] = selector
    return entry


def _client(kind: Kind, wanted: Registration) -> Object:
    path = path_of(kind)
    if wanted.url:
        client: Object = {"url": f"{wanted.url}{path}"}
    else:
        service = {"name": wanted.service, "namespace": wanted.namespace, "path": path}
        client = {"service": service}
    return {**client, "caBundle": wanted.ca_bundle} if wanted.ca_bundle else client


def _selector(wanted: Registration) -> Object:
    if not wanted.restricted_namespace:
        return wanted.selector
    own = {"kubernetes.io/metadata.name": wanted.restricted_namespace}
    return {**wanted.selector, "matchLabels": {**wanted.selector.get("matchLabels", {}), **own}}
