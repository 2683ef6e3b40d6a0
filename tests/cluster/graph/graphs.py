"""Graphs for tests: small, and as a user writes them."""

from typing import Any

from kube_runtime.types.meta import Object

IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0"
SERVICES = ("Decode", "Frontend", "Prefill")


def service(component_type: str, **fields: Any) -> Object:
    pod = {"mainContainer": {"image": IMAGE}}
    return {"componentType": component_type, "replicas": 1, "extraPodSpec": pod, **fields}


def worker(role: str, **fields: Any) -> Object:
    """A vLLM worker with one GPU."""
    arguments = ["--model", "Qwen/Qwen3-0.6B", f"--is-{role}-worker"]
    container = {"image": IMAGE, "command": ["python3", "-m", "dynamo.vllm"], "args": arguments}
    defaults: Object = {
        "subComponentType": role,
        "resources": {"limits": {"gpu": "1"}},
        "extraPodSpec": {"mainContainer": container},
    }
    return service("worker", **{**defaults, **fields})


def graph(name: str = "chat", **services: Object) -> Object:
    """A graph of these services; of a frontend, a prefill and a decode worker if none is given."""
    chosen = services or {
        "Frontend": service("frontend"),
        "Prefill": worker("prefill"),
        "Decode": worker("decode"),
    }
    return {"metadata": {"name": name}, "spec": {"backendFramework": "vllm", "services": chosen}}
