"""Writes docs/status.md from `dynamo_operator.status.meanings` and from the fields of a service's status."""

from itertools import groupby
from pathlib import Path

from dynamo_operator.api.service_status import BlockedPod, ServiceReplicaStatus
from dynamo_operator.api.structural import object_schema
from dynamo_operator.kube.kind import Object
from dynamo_operator.status.meanings import MEANINGS

PAGE = Path(__file__).parents[1] / "docs" / "status.md"
HEAD = """\
# Status: what it says, and what to do

<!-- Written by `make docs`. Change the texts in `src/dynamo_operator/status/meanings.py`. -->

Begin with `kubectl get dgd -o wide`: it shows state, services that are ready, reason and message. The
message names each service that is not ready, with the pod that is worst off:

    Decode: 3/4 ready; pod chat-decode-x7k2p container main ImagePullBackOff: no such tag | Prefill: …

A condition speaks of the generation in its `observedGeneration`; `lastTransitionTime` moves only when
`status` flips. `kubectl wait --for=condition=Ready dgd/NAME` does not return before the newest spec runs
everywhere.

`status.state` of a graph is `initializing` until anything has been seen of a workload, `successful` when
`Ready` is true, `failed` when nothing will change without somebody's action (a mistake, a taken name, a
refusal), else `pending`. `status.observedGeneration` is the newest spec that was either refused as a
whole or brought about without an obstacle: it stays behind while an object cannot be written.
`status.progress` is the best that was reached on the way to the newest spec; it is gone once the graph
is ready.

A pod gets the first reason that fits: `insufficient_capacity`, `image_pull_failed`, `config_error`,
`pods_crashing`, `pods_not_ready`. A service has the reason of its worst pod, in the same order. A
service without replicas is ready.
"""
SERVICE = """\
## A service's status

`status.services.NAME` of a graph, and `status.service` of a component. A field that is absent is not
known; it never means zero.
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
    lines += [SERVICE, *_fields(object_schema(ServiceReplicaStatus)), ""]
    lines += ["`blockedPods[]`:\n", *_fields(object_schema(BlockedPod)), ""]
    return "\n".join(lines)


def _fields(schema: Object) -> list[str]:
    rows = [
        f"| `{name}` | {each.get('description', '')} |"
        for name, each in schema["properties"].items()
    ]
    return ["| field | meaning |", "|---|---|", *rows]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
