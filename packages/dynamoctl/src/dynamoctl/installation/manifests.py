"""The objects of an installation as plain manifests, for users without Helm.

`tools/install_manifests.py` renders them from the chart with its defaults and placeholders for the user's
values, which are replaced object by object, never in text.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from dynamo_operator.crds import custom_resource_definitions
from dynamo_operator.process.flags import read_settings
from dynamo_operator.settings import RenderSettings, WebhookSettings, fields
from dynamo_operator.shared.problems import is_dns_label
from kube_runtime.crd import CONVERSION_PATH, ConversionWebhook
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Object

RENDERED = Path(__file__).with_name("rendered")
RELEASE = "dynamo-platform"
PLACEHOLDER = "namespace-of-the-installation"
_HELM_LABEL = "helm.sh/chart"
NAMESPACE = "dynamo-system"
"""The namespace in the installation guide."""
WEBHOOK_SERVICE = WebhookSettings().service_name
"""The Service of the webhooks of a default installation."""
_OWN_IMAGE = "--operator-image="
_MANAGED_BY = "app.kubernetes.io/managed-by"


@dataclass(frozen=True, slots=True)
class Choices:
    """The choices of a user; "" as `image` is that of this version.

    `is_operator_only` leaves out the namespace and the CRDs: deleting them deletes every graph of the
    cluster, and applying older CRDs drops newer fields. `withheld` are the keys of the chart's `optionalApis`
    that the operator may not use. `stored` is the version in which objects are stored, "" that of a new
    installation. A restricted operator has no webhooks, so only that version is served.
    """

    namespace: str
    image: str = ""
    is_restricted: bool = False
    is_operator_only: bool = False
    withheld: frozenset[str] = frozenset()
    stored: str = ""


def mode(*, is_restricted: bool) -> str:
    """The name of a mode, and of its rendered file."""
    return "restricted" if is_restricted else "cluster-wide"


def manifests(choices: Choices) -> Iterator[Object]:
    """The namespace, our CRDs, then the chart's objects, in the order to apply."""
    if not choices.is_operator_only:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": choices.namespace}}
        converting = None if choices.is_restricted else ConversionWebhook(choices.namespace, WEBHOOK_SERVICE)
        yield from custom_resource_definitions(converting, choices.stored)
    file = RENDERED / f"{mode(is_restricted=choices.is_restricted)}.yaml"
    for body in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        if body:
            yield _chosen(_named(body, choices.namespace), choices)


def conversion_at(address: str) -> ConversionWebhook:
    """The webhook of an operator, from `NAMESPACE/SERVICE` or the URL of its server.

    Raises: ConfigError: it is neither.
    """
    if address.startswith("https://"):
        return ConversionWebhook(url=f"{address.rstrip('/').removesuffix(CONVERSION_PATH)}{CONVERSION_PATH}")
    namespace, _, service = address.partition("/")
    if not (is_dns_label(namespace) and is_dns_label(service)):
        expected = "NAMESPACE/SERVICE or a URL, for example dynamo-system/dynamo-operator-webhook-service"
        raise ConfigError("--conversion", f'invalid value "{address}" (expected {expected})')
    return ConversionWebhook(namespace, service, CONVERSION_PATH)


def operator_pod() -> Object:
    """The pod of the operator in a default installation."""
    chosen = manifests(Choices(NAMESPACE, is_operator_only=True))
    (deployment,) = (body for body in chosen if body["kind"] == "Deployment")
    pod: Object = deployment["spec"]["template"]["spec"]
    return pod


def render_settings(file: Path | None) -> RenderSettings:
    """The render settings of the file, else of a default installation.

    Raises: ConfigErrors.
    """
    if file is not None:
        return read_settings({}, file=file, environment=os.environ).render
    names = {name for field in fields() if field.path[0] == "render" for name in field.flags}
    flags = {
        name: value
        for container in operator_pod()["containers"]
        for name, _, value in (text.lstrip("-").partition("=") for text in container["args"])
        if name in names
    }
    settings = read_settings(flags, environment=os.environ).render
    # The gateways that the cluster's administrator allows are unknown here.
    return msgspec.structs.replace(settings, allowed_gateways="*")


def _named(value: object, namespace: str) -> Any:
    if isinstance(value, dict):
        return {key: _named(entry, namespace) for key, entry in value.items()}
    if isinstance(value, list):
        return [_named(entry, namespace) for entry in value]
    return value.replace(PLACEHOLDER, namespace) if isinstance(value, str) else value


def _chosen(body: Object, choices: Choices) -> Object:
    if choices.withheld and body["kind"] in ("Role", "ClusterRole"):
        from dynamoctl.installation.permissions import RULES

        refused = [rule.as_policy({}) for rule in RULES if rule.feature.value in choices.withheld]
        body["rules"] = [rule for rule in body["rules"] if rule not in refused]
    labels = body["metadata"]["labels"]
    labels.pop(_HELM_LABEL)
    labels[_MANAGED_BY] = "dynamoctl"
    if choices.image and body["kind"] == "Deployment":
        for container in body["spec"]["template"]["spec"]["containers"]:
            container["image"] = choices.image
            container["args"] = [
                f"{_OWN_IMAGE}{choices.image}" if arg.startswith(_OWN_IMAGE) else arg
                for arg in container["args"]
            ]
    return body
