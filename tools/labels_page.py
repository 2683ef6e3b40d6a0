"""Writes docs/labels-and-annotations.md from the declarations in `dynamo_operator.api.labels`."""

from pathlib import Path

from dynamo_operator.api.labels import ENTRIES, SELECTING, Use

PAGE = Path(__file__).parents[1] / "docs" / "labels-and-annotations.md"
HEAD = """\
# Labels and annotations

<!-- Written by `make docs`. Change the texts in `src/dynamo_operator/api/labels.py`. -->

Every key that the operator writes or reads. A service is an entry of `spec.services` of a
DynamoGraphDeployment; its `annotations` are those inside the entry.
"""
SECTIONS = {
    Use.LABEL: "Labels",
    Use.READ: "Annotations that you may set",
    Use.WRITTEN: "Annotations that the operator sets",
}


def page() -> str:
    """The page."""
    lines = [HEAD]
    for use, title in SECTIONS.items():
        rows = [
            f"| `{entry.key}` | {entry.on} | {entry.text} |"
            for entry in ENTRIES
            if entry.use is use
        ]
        lines += [f"## {title}\n", "| key | on | meaning |", "|---|---|---|", *rows, ""]
    keys = ", ".join(f"`{key}`" for key in sorted(SELECTING))
    lines.append(f"Pods are told apart by {keys}. A value of yours for one of these is not used.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
