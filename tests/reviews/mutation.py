"""Manifests with odd things in them."""

import copy
import random
from collections.abc import Iterator
from typing import Any

from kube_runtime.types.meta import Object
from reviews.rows import GRAPH, ROWS

ODD: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**70, 1.5, "", "0", "x", "-", "A" * 300, "\u0000", "é"),
    *([], [None], [[]], {}, {"": None}, {"a": {"b": []}}, "8Gi", "latest", "epp", "frontend"),
)
RICH: Object = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": GRAPH,
    "metadata": {"name": "chat", "namespace": "lab", "annotations": {}, "labels": {}},
    "spec": {
        "backendFramework": "vllm",
        "pvcs": [{"name": "m", "create": False}],
        "envs": [{"name": "A", "value": "b"}],
        "restart": {"id": "r", "strategy": {"type": "Sequential", "order": ["F", "w"]}},
        "services": {
            "F": {
                "componentType": "frontend",
                "ingress": {"enabled": True, "host": "chat", "tls": {"secretName": "s"}},
                "extraPodSpec": {"mainContainer": {"image": "r/f:1"}},
            },
            "w": {
                "componentType": "worker",
                "subComponentType": "decode",
                "replicas": 2,
                "multinode": {"nodeCount": 2},
                "scalingAdapter": {"enabled": True},
                "annotations": {"a/b": "c"},
                "labels": {"a/b": "c"},
                "envFromSecret": "s",
                "resources": {
                    "limits": {"gpu": "1", "memory": "8Gi", "custom": {"rdma/ib": "1"}},
                    "requests": {"cpu": "1"},
                    "claims": [{"name": "c"}],
                },
                "sharedMemory": {"size": "2Gi"},
                "volumeMounts": [{"name": "m", "mountPoint": "/m"}],
                "modelRef": {"name": "q/w"},
                "extraPodMetadata": {"labels": {"x": "y"}, "annotations": {}},
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 5},
                "extraPodSpec": {
                    "resourceClaims": [{"name": "c"}],
                    "volumes": [{"name": "v", "emptyDir": {}}],
                    "tolerations": [{"key": "k", "operator": "Exists"}],
                    "mainContainer": {
                        "image": "r/w:1",
                        "command": ["python3", "-m", "dynamo.vllm"],
                        "args": ["--model", "q/w"],
                        "env": [{"name": "X", "value": "y"}],
                        "ports": [{"name": "http", "containerPort": 8000}],
                        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                        "startupProbe": {"exec": {"command": ["true"]}},
                    },
                },
            },
        },
    },
}
SEEDS = (RICH, RICH, RICH, *(row.new for row in ROWS))


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in a document, with each of its keys."""
    entries: Any = ()
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(enumerate(value))
    for key, each in entries:
        yield value, key
        yield from places(each)


def mutated(chance: random.Random) -> Object:
    """A manifest with one to three odd things in it."""
    found: Object = copy.deepcopy(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 3)):
        inner = list(places(found.get("spec", {})))
        if not inner:
            break
        where, key = chance.choice(inner)
        match chance.randrange(4):
            case 0:
                alike = [each for each in ODD if type(each) is type(where[key])]
                odd = chance.choice(alike if alike and chance.random() < 0.7 else ODD)
                where[key] = copy.deepcopy(odd)  # the next mutation may change it
            case 1:
                del where[key]
            case 2 if isinstance(where, list):
                where.append(copy.deepcopy(where[key]))
            case 2:
                where[f"{key}x"] = copy.deepcopy(where[key])
            case _:
                other, there = chance.choice(inner)
                where[key] = copy.deepcopy(other[there])
    return found
