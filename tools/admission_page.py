"""Writes the table of docs/admission.md, from the rows that the tests judge."""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tests"))

from dynamo_operator.kube.kind import Object  # noqa: E402
from reviews.rows import POD, ROWS, Row  # noqa: E402  the tests are no package that is installed

PAGE = ROOT / "docs" / "admission.md"
_LONGEST = 150
REMEDIES = {
    "S1": "Take the field out.",
    "S2": "0 or more.",
    "S3": "Say `ingress.host`, or switch the ingress off.",
    "S4": "Say `mountPoint`.",
    "S5": "Say `size`, or `disabled: true`.",
    "S6": "Take the field out; use `scalingAdapter` with an autoscaler.",
    "S7": "Install the Gateway API Inference Extension first.",
    "S8": "Take `multinode` out.",
    "S9": "One replica.",
    "S10": "Say `eppConfig`.",
    "S11": "Say one of the two.",
    "S12": "Say one of the two.",
    "S13": "Name the ConfigMap.",
    "G1": "Say at least one service.",
    "G2-G5": "Fill in what is missing, or leave `create` out and make the claim yourself.",
    "G6": "Any text, such as a time.",
    "G7": "Take `order` out, or use `Sequential`.",
    "G8-G9": "Name every service once.",
    "G10": "Name services of this graph.",
    "U1": "Make a new graph under another name, then delete the old one.",
    "U2": "Make a new graph under another name.",
    "U3": "Make a new graph under another name.",
    "U4": "Scale the adapter, or leave `replicas` out of what you apply.",
    "DCD": "As for a service.",
    "DCD-U1": "As U1.",
    "R1-R2": "Name the profiler's image.",
    "R3": "Describe the hardware in the configuration, or use a cluster-wide operator.",
    "R4": "The configuration is an object.",
    "R5": "Leave it out, or say the same.",
    "R6": "Leave it out, or say the same.",
    "M1-M2": "Say both names.",
    "M3": "Say `source.uri`.",
    "M4": "Say `source.uri`.",
    "M5": "Use one of the schemes, in lower case.",
    "M-U": "Delete the model and make a new one.",
}
MARK = "<!-- rules -->"


def page() -> str:
    """The page: what people wrote above the mark, and the table."""
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    rows = ["| rule | example | answer | remedy |", "|---|---|---|---|"]
    for row in ROWS:
        answer = [*row.refused.splitlines(), *(f"Warning: {each}" for each in row.warnings)]
        if answer:
            text = "<br>".join(each.replace("|", "\\|") for each in answer)
            rows.append(f"| {row.id} | {_example(row)} | {text} | {REMEDIES[row.id]} |")
    return "\n".join([f"{head}{MARK}", "", *rows]) + "\n"


def _example(row: Row) -> str:
    new = _shown(row.new["spec"])
    text = f"{_shown(row.old['spec'])} → {new}" if row.old else new
    by = f" by `{row.user}`" if row.id == "U4" else ""
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}`{by}"


def _shown(spec: Object) -> str:
    """A spec without what every example has."""
    text = json.dumps(_without_pods(spec), ensure_ascii=False)
    return text.replace('"', "").replace("|", "\\|")


def _without_pods(value: Object) -> Object:
    return {
        key: _without_pods(each) if isinstance(each, dict) else each
        for key, each in value.items()
        if each != POD
    }


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
