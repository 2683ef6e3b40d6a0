"""The objects of an installation as plain manifests, for who has no Helm.

They are the chart's, rendered with its defaults and packaged (`tools/install_manifests.py`), so that there
is one source. The user's values are placeholders there, and are replaced object by object: never
in text.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dynamo_graphs.api.crd import custom_resource_definitions
from dynamoctl.installation.permissions import RULES
from kube_runtime.kind import Object

RENDERED = Path(__file__).with_name("rendered")
RELEASE = "dynamo-platform"
PLACEHOLDER = "namespace-of-the-installation"
_HELM_LABEL = "helm.sh/chart"
_OWN_IMAGE = "--operator-image="
_MANAGED_BY = "app.kubernetes.io/managed-by"


@dataclass(frozen=True, slots=True)
class Choices:
    """What a user can choose. An empty `image` is the one of this version.

    With `is_operator_only` the namespace and the CRDs are left out: deleting those deletes every graph of
    the cluster, and applying older CRDs drops the fields that only the newer ones have. `withheld` are
    the keys of optional APIs, as the chart has them below `optionalApis`, that the operator may not use.
    """

    namespace: str
    image: str = ""
    is_restricted: bool = False
    is_operator_only: bool = False
    withheld: frozenset[str] = frozenset()


def mode(*, is_restricted: bool) -> str:
    """The name of a mode, as its rendered file has it."""
    return "restricted" if is_restricted else "cluster-wide"


def manifests(choices: Choices) -> Iterator[Object]:
    """The namespace, our CRDs, then the chart's objects, in the order in which they are applied."""
    if not choices.is_operator_only:
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": choices.namespace}}
        yield from custom_resource_definitions()
    file = RENDERED / f"{mode(is_restricted=choices.is_restricted)}.yaml"
    for each in yaml.load_all(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader):
        if each:
            yield _chosen(_named(each, choices.namespace), choices)


def _named(value: object, namespace: str) -> Any:
    """The value with the namespace in place of the placeholder."""
    if isinstance(value, dict):
        return {key: _named(each, namespace) for key, each in value.items()}
    if isinstance(value, list):
        return [_named(each, namespace) for each in value]
    return value.replace(PLACEHOLDER, namespace) if isinstance(value, str) else value


def _chosen(each: Object, choices: Choices) -> Object:
    if each["kind"] in ("Role", "ClusterRole"):
        refused = [rule.as_policy({}) for rule in RULES if rule.feature.value in choices.withheld]
        each["rules"] = [rule for rule in each["rules"] if rule not in refused]
    labels = each["metadata"]["labels"]
    labels.pop(_HELM_LABEL)
    labels[_MANAGED_BY] = "dynamoctl"
    if choices.image and each["kind"] == "Deployment":
        for container in each["spec"]["template"]["spec"]["containers"]:
            container["image"] = choices.image
            container["args"] = [
                f"{_OWN_IMAGE}{choices.image}" if arg.startswith(_OWN_IMAGE) else arg
                for arg in container["args"]
            ]
    return each
