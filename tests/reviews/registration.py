"""The ValidatingWebhookConfiguration that the chart has to render, and that tests install.

Which requests are reviewed, and by which endpoint.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dynamo_operator.admission.configuration import LEGACY_REVIEWED, REVIEWED, entry_name, path_of
from kube_runtime.types.kinds import ValidatingWebhookConfiguration
from kube_runtime.types.meta import Kind, Object

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
        return f"{full_name(self.release)}-webhook-service"


def full_name(release: str) -> str:
    """The name prefix of a release's objects."""
    full = release if "dynamo-operator" in release else f"{release}-dynamo-operator"
    return full[:_LONGEST].rstrip("-")


def registration(installation: Registration) -> Object:
    """The ValidatingWebhookConfiguration as JSON."""
    metadata: Object = {"name": installation.name, "labels": {**LABELS, **installation.labels}}
    if installation.annotations:
        metadata["annotations"] = dict(installation.annotations)
    kinds = (
        *(type_.KIND for type_ in REVIEWED),
        *(LEGACY_REVIEWED if installation.legacy_kinds else ()),
    )
    return {
        "apiVersion": ValidatingWebhookConfiguration.KIND.api_version,
        "kind": ValidatingWebhookConfiguration.KIND.name,
        "metadata": metadata,
        "webhooks": [_entry(kind, installation) for kind in kinds],
    }


def _entry(kind: Kind, installation: Registration) -> Object:
    entry: Object = {
        "name": entry_name(kind),
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(kind, installation),
        "failurePolicy": installation.failure_policy,
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": [kind.version],
                "operations": ["CREATE", "UPDATE"],
                "resources": [kind.plural],
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": installation.timeout_seconds,
    }
    if selector := _selector(installation):
        entry["namespaceSelector"] = selector
    return entry


def _client(kind: Kind, installation: Registration) -> Object:
    path = path_of(kind)
    if installation.url:
        client: Object = {"url": f"{installation.url}{path}"}
    else:
        service = {"name": installation.service, "namespace": installation.namespace, "path": path}
        client = {"service": service}
    return {**client, "caBundle": installation.ca_bundle} if installation.ca_bundle else client


def _selector(installation: Registration) -> Object:
    if not installation.restricted_namespace:
        return installation.selector
    own = {"kubernetes.io/metadata.name": installation.restricted_namespace}
    return {
        **installation.selector,
        "matchLabels": {**installation.selector.get("matchLabels", {}), **own},
    }
