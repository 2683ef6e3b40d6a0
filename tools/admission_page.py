"""The table of docs/admission.md, from the rows that the tests check."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from kube_runtime.types.meta import Object  # noqa: E402
from reviews.rows import POD, ROWS, Row  # noqa: E402  the tests are not an installed package
from tools.markdown import escaped, table  # noqa: E402

PAGE = ROOT / "docs" / "admission.md"
_LONGEST = 150
REMEDIES = {
    "S1": "Remove the field.",
    "S2": "Set 0 or more.",
    "S3": "Set `ingress.host`, or disable the ingress.",
    "S4": "Set `mountPoint`.",
    "S5": "Set `size`, or `disabled: true`.",
    "S6": "Remove the field; use `scalingAdapter` with an autoscaler.",
    "S7": "Install the Gateway API Inference Extension first.",
    "S8": "Remove `multinode`.",
    "S9": "Set one replica.",
    "S10": "Set `eppConfig`.",
    "S11": "Set one of the two.",
    "S12": "Set one of the two.",
    "S13": "Name the ConfigMap.",
    "G1": "Add at least one service.",
    "G2-G5": "Set the missing fields, or remove `create` and create the PVC yourself.",
    "G6": "Set any text, for example a time.",
    "G7": "Remove `order`, or use `Sequential`.",
    "G8-G9": "Name every service once.",
    "G10": "Name services of this graph.",
    "U1": "Create a new graph under another name, then delete the old one.",
    "U2": "Create a new graph under another name.",
    "U3": "Create a new graph under another name.",
    "U4": "Scale the adapter, or remove `replicas` from the manifest.",
    "DCD": "As for a service.",
    "DCD-U1": "As U1.",
    "R1-R2": "Name the profiler's image.",
    "R3": "Describe the hardware in the configuration, or use a cluster-wide operator.",
    "R4": "Write the configuration as an object.",
    "R5": "Remove it, or set the same value.",
    "R6": "Remove it, or set the same value.",
    "M1-M2": "Set both names.",
    "M3": "Set `source.uri`.",
    "M4": "Set `source.uri`.",
    "M5": "Use one of the schemes, in lower case.",
    "M-U": "Delete the model and create a new one.",
}
MARK = "<!-- rules -->"


def page() -> str:
    """The text above the mark, which is written by hand, and the table."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    rows = [
        (row.id, _example(row), "<br>".join(map(escaped, answer)), REMEDIES[row.id])
        for row in ROWS
        if (answer := _answer(row))
    ]
    lines = table(("rule", "example", "answer", "remedy"), rows)
    return "\n".join([f"{head}{MARK}", "", *lines]) + "\n"


def _answer(row: Row) -> list[str]:
    """The errors and warnings of a review."""
    return [*row.refused.splitlines(), *(f"Warning: {warning}" for warning in row.warnings)]


def _example(row: Row) -> str:
    new = _shown(row.new["spec"])
    text = f"{_shown(row.old['spec'])} → {new}" if row.old else new
    by = f" by `{row.user}`" if row.id == "U4" else ""
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}`{by}"


def _shown(spec: Object) -> str:
    """A spec as text, without the pod fields that every example has."""
    text = json.dumps(_without_pods(spec), ensure_ascii=False)
    return escaped(text.replace('"', ""))


def _without_pods(value: Object) -> Object:
    return {
        key: _without_pods(field) if isinstance(field, dict) else field
        for key, field in value.items()
        if field != POD
    }
