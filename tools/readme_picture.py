"""The picture of the README: a graph as the library draws it."""

from pathlib import Path

from dynamo_graphs import Graph
from kube_runtime.types.meta import Object

PICTURE = Path(__file__).parents[1] / "docs/graph.svg"
MODEL = "Qwen/Qwen3-32B"


def picture() -> str:
    """A disaggregated graph with one replica that is not ready yet."""
    graph = (
        Graph("chat")
        .frontend(routing="kv", replicas=2)
        .planner()
        .prefill(model=MODEL, gpus=2, replicas=2)
        .decode(model=MODEL, gpus=4, replicas=4)
    )
    document = graph.to_dict()
    ready = {"Frontend": 2, "Planner": 1, "Prefill": 2, "Decode": 3}
    document["status"] = {
        "conditions": [{"type": "Ready", "status": "False", "reason": "pods_not_ready"}],
        "services": {name: _counts(number) for name, number in ready.items()},
    }
    return Graph.from_dict(document).svg() + "\n"


def _counts(ready: int) -> Object:
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), ready)
    return {"componentKind": "Deployment", "componentName": "x", **counts}
