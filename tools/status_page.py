"""The page docs/status.md, from the catalogues of reasons and the fields of a service's status."""

from itertools import groupby
from pathlib import Path

from dynamo_graphs.catalog import MEANINGS
from dynamo_operator.component.api import BlockedPod, ServiceReplicaStatus
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.shared.conditions import POD_REASONS
from kube_runtime.schema import object_schema
from kube_runtime.types.meta import Object
from tools.markdown import table

PAGE = Path(__file__).parents[1] / "docs" / "status.md"
HEAD = """\
# Status: conditions, reasons and remedies

<!-- Written by `make docs`. Source: `packages/dynamo-graphs/src/dynamo_graphs/meanings.toml`. -->

Start with `dynamoctl why NAME`: it reports what blocks a graph, with the matching remedy from this page
([command lines](cli.md)). Without it, use `kubectl get dgd -o wide`: state, ready services, reason and
message. The message names each service that is not ready, with its worst pod:

    Decode: 3/4 ready; pod chat-decode-x7k2p container main ImagePullBackOff: no such tag | Prefill: …

A condition describes the generation in its `observedGeneration`; `lastTransitionTime` changes only when
`status` flips. `kubectl wait --for=condition=Ready dgd/NAME` returns only when the newest spec runs
everywhere.

`status.state` of a graph is `initializing` until the operator has observed a workload, `successful` when
`Ready` is true, `failed` when only a change by a user helps (an invalid spec, a taken name, a refusal), else
`pending`. `status.observedGeneration` is the newest spec that the operator applied without an obstacle: it
lags while a spec is refused as a whole or an object cannot be written. The generation that a condition
describes, including a refused one, is in the condition's own `observedGeneration`.
The reason `waiting_for_model_cache` does not exist, because no model cache is filled before workers start. A
worker that loads its model is `pods_not_ready`. A pod whose PVC is not bound has no node, so its reason is
`insufficient_capacity`; `dynamoctl why` names the PVC and what it waits for.
`status.progress` is the highest number of ready replicas on the way to the newest spec; it disappears once
the graph is ready.

A pod gets the first reason that applies:
{reasons}.
A service has the reason of its worst pod, in the same order. A service without replicas is ready.
"""
REQUEST = """\
`Succeeded` sums up the other conditions: for a failed request it has the reason of the failed step.
`kubectl get dgdr -o wide` shows that reason and `status.message`. See [requests](requests.md).
"""
INTRODUCTIONS = {DynamoGraphDeploymentRequest.KIND.name: (REQUEST,)}
PROMISE = """\
## What Ready promises, and what it does not

`Ready` means that the desired number of pods of the newest spec run and their probes succeed. What that means
for clients depends on the runtime:

- A worker is ready when its endpoint is: it has loaded its model and accepts requests
  (`DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS`).
- A frontend is ready as soon as it listens. It may not know any worker yet, even some seconds after the
  last one became ready: its `/health` then reports success with an empty list of instances, and a request
  gets 404.
- The operator sends no request to a model. `Ready` says nothing about the quality of its answers.

Query the frontend before you route users to it. It lists the models that it serves:

    kubectl port-forward service/NAME-frontend 8000 &
    curl --silent localhost:8000/v1/models     # {"object":"list","data":[{"id":"MODEL",…}]}
"""
SERVICE = """\
## A service's status

`status.components.NAME` of a graph, and `status.component` of a component; in `v1alpha1`
`status.services.NAME` and `status.service`. An absent field is unknown; it never means zero.
"""


def page() -> str:
    """The page."""
    lines = [HEAD.format(reasons=", ".join(f"`{reason}`" for reason in POD_REASONS))]
    for kind, rows in groupby(MEANINGS, key=lambda meaning: meaning.kind):
        cells = [(row.condition, row.status, f"`{row.reason}`", row.text, row.advice) for row in rows]
        lines += [
            f"## {kind}\n",
            *INTRODUCTIONS.get(kind, ()),
            *table(("condition", "status", "reason", "meaning", "what to do"), cells),
            "",
        ]
    lines += [PROMISE, SERVICE, *_fields(object_schema(ServiceReplicaStatus)), ""]
    lines += ["`blockedPods[]`:\n", *_fields(object_schema(BlockedPod)), ""]
    return "\n".join(lines)


def _fields(schema: Object) -> list[str]:
    rows = [(f"`{name}`", field.get("description", "")) for name, field in schema["properties"].items()]
    return table(("field", "meaning"), rows)
