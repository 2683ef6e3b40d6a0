"""The generated files of the charts: the CRDs and the list of permissions."""

import io
from collections.abc import Iterable, Mapping
from pathlib import Path

from dynamo_graphs.output import write_yaml
from dynamo_legacy.api import RESOURCES as LEGACY
from dynamo_operator.crds import custom_resource_definition, custom_resource_definitions
from dynamoctl.installation.permissions import GRANTED, PROFILING_NODES, RULES, Name, Rule
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.meta import Object

CHARTS = Path(__file__).parents[1] / "charts"
_TEMPLATE_MARK = "{{"


def files() -> dict[Path, str]:
    """The text of each file, by its path below `charts`."""
    return {**dict(_definitions()), Path("dynamo-platform/files/permissions.yaml"): _permissions()}


def _definitions() -> Iterable[tuple[Path, str]]:
    webhook = ConversionWebhook("service-namespace", "service-name", ca_bundle="ca")
    both = custom_resource_definitions(webhook, warns=True)
    for definition, with_both in zip(custom_resource_definitions(), both, strict=True):
        is_one = "conversion" not in with_both["spec"]
        yield _template(definition), _plain(definition) if is_one else _choosing(with_both)
    for definition in map(custom_resource_definition, LEGACY):
        text = f"{{{{- if .Values.legacyKinds.enabled }}}}\n{_plain(definition)}{{{{- end }}}}\n"
        yield _template(definition), text


_END = "{{- end }}"
_BOTH = "{{- if .Values.conversion.enabled }}"
_CHOSEN: Mapping[str, tuple[str, ...]] = {
    "    helm.sh/resource-policy: keep": (
        "    helm.sh/resource-policy: keep",
        "    {{- with and .Values.conversion.enabled .Values.conversion.injectCaFrom }}",
        "    cert-manager.io/inject-ca-from: {{ . | quote }}",
        f"    {_END}",
    ),
    "    deprecated: true": (
        "    {{- if and .Values.conversion.enabled .Values.conversion.deprecationWarning }}",
        "    deprecated: true",
    ),
    "  conversion:": (f"  {_END}", f"  {_BOTH}", "  conversion:"),
    "          namespace: service-namespace": (
        "          namespace: {{ .Values.conversion.service.namespace }}",
    ),
    "          name: service-name": ("          name: {{ .Values.conversion.service.name }}",),
    "        caBundle: ca": (
        "        {{- with .Values.conversion.caBundle }}",
        "        caBundle: {{ . | quote }}",
        f"        {_END}",
    ),
}
"""What values decide, by the line of the CRD."""
_DEPRECATION = "    deprecationWarning: "
_VERSION = "  - name: v1"
_STORAGE = "    storage: "


# Schemas have thousands of lines, and a Helm release has a limit of bytes: so each version is there once.
def _choosing(definition: Object) -> str:
    """The template of a kind with two versions, which serves what its values say."""
    name = definition["metadata"]["name"]
    text, version = [f'{{{{- $stored := include "dynamo-crds.stored" (list . "{name}") }}}}'], ""
    for line in _plain(definition).splitlines():
        if line.startswith(_VERSION):
            text += [f"  {_END}"] if version else []
            version = line.rpartition(" ")[2]
            text.append(f'  {{{{- if or .Values.conversion.enabled (eq $stored "{version}") }}}}')
        stored = (f'{_STORAGE}{{{{ eq $stored "{version}" }}}}',)
        text += stored if line.startswith(_STORAGE) else _CHOSEN.get(line, (line,))
        if line.startswith(_DEPRECATION):
            text.append(f"    {_END}")
    return "\n".join([*text, f"  {_END}", ""])


def _template(definition: Object) -> Path:
    return Path(f"dynamo-crds/templates/{definition['spec']['names']['plural']}.yaml")


def _plain(definition: Object) -> str:
    text = _yaml(definition)
    if _TEMPLATE_MARK in text:
        name = definition["metadata"]["name"]
        raise ValueError(f"{name}: Helm would interpret a description as a template")
    return text


def _permissions() -> str:
    head = "# Written by `make docs` from packages/dynamoctl/src/dynamoctl/installation.\n"
    granted = [
        {
            "name": grant.name,
            "account": grant.account,
            "role": grant.role,
            "binding": grant.binding,
            "rules": [_as_data(rule) for rule in grant.rules],
        }
        for grant in GRANTED
    ]
    nodes = [_as_data(rule) for rule in PROFILING_NODES]
    rules = [_as_data(rule) for rule in RULES]
    return head + _yaml({"operator": rules, "granted": granted, "profilingNodes": nodes})


def _as_data(rule: Rule) -> Object:
    """The rule as the chart reads it."""
    names = {name: name.value for name in Name}
    head = {"why": rule.why, "where": rule.where.value, "feature": rule.feature.value}
    return {**head, **rule.as_policy(names)}


def _yaml(value: Object) -> str:
    stream = io.StringIO()
    write_yaml([value], stream)
    return stream.getvalue()
