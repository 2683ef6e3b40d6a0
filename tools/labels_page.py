"""The page docs/labels-and-annotations.md, from `labels.toml`."""

import tomllib
from pathlib import Path

from dynamo_operator.labels import SELECTING
from tools.markdown import table

KEYS: list[dict[str, str]] = tomllib.loads(Path(__file__).with_name("labels.toml").read_text("utf-8"))["key"]
"""Each key with its `use`: a label, or an annotation that is read or written; what it is on, and its text."""

PAGE = Path(__file__).parents[1] / "docs" / "labels-and-annotations.md"
HEAD = """\
# Labels and annotations

<!-- Written by `make docs`. Change the texts in `tools/labels.toml`. -->

Every key that the operator reads or writes. A service is an entry of `spec.components` of a
DynamoGraphDeployment, in `v1alpha1` of `spec.services`. Only `v1alpha1` has fields for its `labels` and
`annotations`; `extraPodMetadata` is `podTemplate.metadata` in `v1beta1`.
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
    "label": "Labels",
    "read": "Annotations that you can set",
    "written": "Annotations that the operator sets",
}


def page() -> str:
    """The page."""
    lines = [HEAD]
    for use, title in SECTIONS.items():
        rows = [(f"`{row['key']}`", row["on"], row["text"]) for row in KEYS if row["use"] == use]
        lines += [f"## {title}\n", *table(("key", "on", "meaning"), rows), ""]
    lines.append(YOUR_OWN)
    keys = ", ".join(f"`{key}`" for key in sorted(SELECTING))
    lines.append(f"Selectors use {keys}. Your own values for these keys are ignored.")
    return "\n".join(lines) + "\n"
