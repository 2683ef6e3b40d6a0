"""The page docs/labels-and-annotations.md, from the declarations in `dynamo_operator.labels`."""

from pathlib import Path

from dynamo_operator.labels import ENTRIES, SELECTING, Use
from tools.markdown import table

PAGE = Path(__file__).parents[1] / "docs" / "labels-and-annotations.md"
HEAD = """\
# Labels and annotations

<!-- Written by `make docs`. Change the texts in `packages/dynamo-operator/src/dynamo_operator/labels.py`. -->

Every key that the operator reads or writes. A service is an entry of `spec.services` of a
DynamoGraphDeployment; its `annotations` are those inside the entry.
"""
YOUR_OWN = """\
## Your own labels and annotations

The operator sets `spec.labels` and `spec.annotations` of a DynamoGraphDeployment on every object it
creates for the graph: components, workloads and their pods, Services, Ingress, disruption budgets,
ConfigMaps, ServiceAccounts of this graph alone, and new PVCs. Objects shared by several graphs, such as
the Service of a model or the planner's ServiceAccount, get none of them.

| these | override | on |
|---|---|---|
| a service's `labels`, `annotations` | those of the graph | all objects of that service |
| `extraPodMetadata` | both | the pods of that service; annotations also on workload, Services, Ingress |
| the operator's own | all | all objects |

They are part of the pod template: changing one replaces the pods. The operator refuses keys in the
labels and annotations of a graph that it sets or reads itself, and lists those keys; of the
`app.kubernetes.io/` labels it sets its own on ServiceAccounts and roles only. In those of a service such a
key is accepted without effect, as before, so that old manifests keep their meaning.
"""
SECTIONS = {
    Use.LABEL: "Labels",
    Use.READ: "Annotations that you can set",
    Use.WRITTEN: "Annotations that the operator sets",
}


def page() -> str:
    """The page."""
    lines = [HEAD]
    for use, title in SECTIONS.items():
        rows = [(f"`{entry.key}`", entry.on, entry.text) for entry in ENTRIES if entry.use is use]
        lines += [f"## {title}\n", *table(("key", "on", "meaning"), rows), ""]
    lines.append(YOUR_OWN)
    keys = ", ".join(f"`{key}`" for key in sorted(SELECTING))
    lines.append(f"Selectors use {keys}. Your own values for these keys are ignored.")
    return "\n".join(lines) + "\n"
