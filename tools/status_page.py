"""Writes docs/status.md from the meanings of reasons and from the fields of a service's status."""

from itertools import groupby
from pathlib import Path

from dynamo_operator.api.request import DynamoGraphDeploymentRequest
from dynamo_operator.api.service_status import BlockedPod, ServiceReplicaStatus
from dynamo_operator.api.structural import object_schema
from dynamo_operator.kube.kind import Object
from dynamo_operator.status.meanings import MEANINGS
from dynamo_operator.status.request_meanings import REQUEST_MEANINGS

PAGE = Path(__file__).parents[1] / "docs" / "status.md"
HEAD = """\
# Status: what it says, and what to do

<!-- Written by `make docs`. Change the texts in `src/dynamo_operator/status/*meanings.py`. -->

Begin with `dynamoctl why NAME`: it says what holds a graph up, with the advice of this page for just that
([cli.md](cli.md)). Without it, take `kubectl get dgd -o wide`: it shows state, services that are ready,
reason and message. The message names each service that is not ready, with the pod that is worst off:

    Decode: 3/4 ready; pod chat-decode-x7k2p container main ImagePullBackOff: no such tag | Prefill: …

A condition speaks of the generation in its `observedGeneration`; `lastTransitionTime` moves only when
`status` flips. `kubectl wait --for=condition=Ready dgd/NAME` does not return before the newest spec runs
everywhere.

`status.state` of a graph is `initializing` until anything has been seen of a workload, `successful` when
`Ready` is true, `failed` when nothing will change without somebody's action (a mistake, a taken name, a
refusal), else `pending`. `status.observedGeneration` is the newest spec that was carried out without an
obstacle: it stays behind while a spec is refused as a whole, or an object cannot be written. Which spec a
condition speaks of, one that was refused for instance, is in the condition's own `observedGeneration`.
There is no reason `waiting_for_model_cache`: nothing here fills a model cache before workers start, so
nothing would know. A worker that loads its model is `pods_not_ready`, a claim without a volume
`insufficient_capacity`. `status.progress` is the best that was reached on the way to the newest spec; it is
gone once the graph is ready.

A pod gets the first reason that fits: `insufficient_capacity`, `image_pull_failed`, `config_error`,
`pods_crashing`, `pods_not_ready`. A service has the reason of its worst pod, in the same order. A
service without replicas is ready.
"""
REQUEST = """\
`Succeeded` sums the other conditions up: when the request has failed it has the reason of the step that
failed. `kubectl get dgdr -o wide` shows that reason and `status.message`. See [requests.md](requests.md).
"""
INTRODUCTIONS = {DynamoGraphDeploymentRequest.KIND.name: (REQUEST,)}
PROMISE = """\
## What Ready promises, and what it does not

`Ready` says that the pods are: all of the newest spec run, in the wanted number, and their probes succeed.
What that means for whoever asks is the runtime's to say:

- A worker is ready when its endpoint is: it has loaded its model and takes requests
  (`DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS`).
- A frontend is ready as soon as it listens. It may know no worker yet, and for some seconds after the last
  one became ready it still may not: its `/health` answers with success and an empty list of instances,
  and a request gets 404.
- Nothing here sends a request to a model. That a worker's answers are any good, `Ready` does not say.

So ask the frontend itself before you send it users. A model is served when it is listed:

    kubectl port-forward service/NAME-frontend 8000 &
    curl --silent localhost:8000/v1/models     # {"object":"list","data":[{"id":"MODEL",…}]}
"""
SERVICE = """\
## A service's status

`status.services.NAME` of a graph, and `status.service` of a component. A field that is absent is not
known; it never means zero.
"""


def page() -> str:
    """The page."""
    lines = [HEAD]
    for kind, rows in groupby((*MEANINGS, *REQUEST_MEANINGS), key=lambda each: each.kind):
        lines += [
            f"## {kind}\n",
            *INTRODUCTIONS.get(kind, ()),
            "| condition | status | reason | meaning | what to do |",
        ]
        lines.append("|---|---|---|---|---|")
        lines += [
            f"| {row.condition} | {row.status} | `{row.reason}` | {row.text} | {row.advice} |"
            for row in rows
        ]
        lines.append("")
    lines += [PROMISE, SERVICE, *_fields(object_schema(ServiceReplicaStatus)), ""]
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
