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
YOUR_OWN = """\
## Labels and annotations of your own

`spec.labels` and `spec.annotations` of a DynamoGraphDeployment stand on everything that is made
for it: components, workloads and their pods, Services, Ingress, disruption budgets, ConfigMaps,
the accounts that only this graph uses, and claims when they are created. What several graphs
share, such as the Service of a model or the planner's account, has none of them.

| wins | over | on |
|---|---|---|
| a service's `labels`, `annotations` | those of the graph | everything of that service |
| `extraPodMetadata` | both | the pods of that service; annotations also on workload, Services, Ingress |
| the operator's own | all | everything |

They are part of the pod template: a change of one replaces the pods. In the labels and
annotations of a graph a key that the operator sets or reads is refused, with the list of those
keys; of the `app.kubernetes.io/` labels ours stand on accounts and roles only. In those of a
service such a key is taken and has no effect, as it was before, so that old manifests keep
their meaning.
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
    lines.append(YOUR_OWN)
    keys = ", ".join(f"`{key}`" for key in sorted(SELECTING))
    lines.append(f"Pods are told apart by {keys}. A value of yours for one of these is not used.")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
