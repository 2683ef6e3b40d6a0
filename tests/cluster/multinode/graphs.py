"""Graphs with one service over several nodes."""

import base64
from typing import Any

from kube_runtime.types.meta import Object

IMAGE = "registry.example.com/dynamo/engine:1.0"
KEYS = "mpi-keys"
KEYS_NAMESPACE = "dynamo-system"


def graph(framework: str, *, nodes: int = 2, image: str = IMAGE, **fields: Any) -> Object:
    """A graph of one service `W` that needs more than the one GPU of a node."""
    flag = {"vllm": "--tensor-parallel-size", "sglang": "--tp", "trtllm": "--tp"}[framework]
    main = {
        "image": image,
        "command": ["python3", "-m", f"dynamo.{framework}"],
        "args": ["--model", "acme/chat-70b", flag, str(nodes)],
    }
    service = {
        "componentType": "worker",
        "replicas": 1,
        "multinode": {"nodeCount": nodes},
        "resources": {"limits": {"gpu": "1"}},
        "extraPodSpec": {"mainContainer": main},
        **fields,
    }
    return {"metadata": {"name": "g"}, "spec": {"services": {"W": service}}}


def secret(private_key: str) -> Object:
    data = {name: encoded(private_key) for name in ("private.key", "private.key.pub")}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": KEYS}, "data": data}


def encoded(text: str) -> str:
    """The text as the data of a Secret say it."""
    return base64.b64encode(text.encode()).decode()
