"""Writes docs/conditions.md from the declarations in `dynamo_operator.status.reasons`."""

from itertools import groupby
from pathlib import Path

from dynamo_operator.status.reasons import MEANINGS

PAGE = Path(__file__).parents[1] / "docs" / "conditions.md"
HEAD = """\
# Conditions and reasons

<!-- Written by `make docs`. Change the texts in `src/dynamo_operator/status/reasons.py`. -->

What the status of an object says, why, and what to do. A condition speaks of the generation in its
`observedGeneration`; `lastTransitionTime` moves only when `status` flips.

`status.state` of a graph is `successful` when `Ready` is true, `failed` when nothing will change without
somebody's action (a mistake, a taken name, a refusal), else `pending`. `status.observedGeneration` is the
newest spec that was either refused as a whole or brought about without an obstacle: it stays behind while an
object cannot be written.
"""


def page() -> str:
    """The page."""
    lines = [HEAD]
    for kind, rows in groupby(MEANINGS, key=lambda each: each.kind):
        lines += [f"## {kind}\n", "| condition | status | reason | meaning | what to do |"]
        lines.append("|---|---|---|---|---|")
        lines += [
            f"| {row.condition} | {row.status} | `{row.reason}` | {row.text} | {row.advice} |"
            for row in rows
        ]
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
