"""The generated files of the charts: the CRDs and the list of permissions."""

import io
from collections.abc import Iterable
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
    both = custom_resource_definitions(ConversionWebhook(*_SERVICE))
    for definition, with_both in zip(custom_resource_definitions(), both, strict=True):
        yield _template(definition), _choosing(_plain(definition), _plain(with_both))
    for definition in map(custom_resource_definition, LEGACY):
        text = f"{{{{- if .Values.legacyKinds.enabled }}}}\n{_plain(definition)}{{{{- end }}}}\n"
        yield _template(definition), text


_SERVICE = ("service-namespace", "service-name")
_CONDITION = "  {{- if .Values.conversion.enabled }}"
_STORED = ".Values.conversion.storedVersion"
_CHOSEN = {
    ("v1alpha1", "    storage: false"): (
        f'    storage: {{{{ or (not .Values.conversion.enabled) (eq "v1alpha1" {_STORED}) }}}}'
    ),
    ("v1beta1", "    storage: true"): f'    storage: {{{{ eq "v1beta1" {_STORED} }}}}',
    ("v1beta1", f"          namespace: {_SERVICE[0]}"): (
        "          namespace: {{ default .Release.Namespace .Values.conversion.service.namespace }}"
    ),
    ("v1beta1", f"          name: {_SERVICE[1]}"): "          name: {{ .Values.conversion.service.name }}",
}
"""What values decide, by the version and the line."""


# Schemas have thousands of lines, and a Helm release has a limit of bytes: so the lines of a second version,
# and of the conversion, are added to those of the first.
def _choosing(plain: str, both: str) -> str:
    """The template of a kind that serves what its values say."""
    if plain == both:
        return plain
    text, version, is_optional = [], "", False
    known = set(plain.splitlines())
    for line in both.splitlines():
        if line.startswith("  - name: v1"):
            version = line.rpartition(" ")[2]
        if line.startswith(("  - name: v1", "  conversion:", "    deprecat")) and line not in known:
            text += [] if is_optional else [_CONDITION]
            is_optional = True
        elif is_optional and version == "v1alpha1" and line in known:
            text.append("  {{- end }}")
            is_optional = False
        text.append(_CHOSEN.get((version, line), line))
    return "\n".join([*text, *(["  {{- end }}"] if is_optional else []), ""])


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
