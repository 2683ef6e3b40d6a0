"""Graphs as Python objects, and the clusters that they run in.

`from dynamo_graphs import Graph` is the library for Python users. Each name is imported with its first use.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dynamo_graphs.fields import (
        DisruptionBudget,
        EnvVar,
        EnvVarSource,
        IngressSpec,
        PersistentVolumeClaim,
        Probe,
        ProfilingConfig,
        ResourceItem,
        Resources,
        SharedMemory,
        Toleration,
        VolumeMount,
    )
    from dynamo_graphs.graph import ApiObject, AsyncCluster, Cluster, Exists, Graph, NotReady
    from dynamo_graphs.logs import Logs
    from dynamo_graphs.objects import InvalidObject
    from dynamo_graphs.offline import installed_settings
    from dynamo_graphs.others import Component, Latency, Model, Request, ScalingAdapter
    from dynamo_operator.shared.problems import Problem

__all__ = [
    "ApiObject",
    "AsyncCluster",
    "Cluster",
    "Component",
    "DisruptionBudget",
    "EnvVar",
    "EnvVarSource",
    "Exists",
    "Graph",
    "IngressSpec",
    "InvalidObject",
    "Latency",
    "Logs",
    "Model",
    "NotReady",
    "PersistentVolumeClaim",
    "Probe",
    "Problem",
    "ProfilingConfig",
    "Request",
    "ResourceItem",
    "Resources",
    "ScalingAdapter",
    "SharedMemory",
    "Toleration",
    "VolumeMount",
    "installed_settings",
]

_MODULES = {
    **dict.fromkeys(
        ("ApiObject", "AsyncCluster", "Cluster", "Exists", "Graph", "NotReady"), "dynamo_graphs.graph"
    ),
    **dict.fromkeys(("Component", "Latency", "Model", "Request", "ScalingAdapter"), "dynamo_graphs.others"),
    "InvalidObject": "dynamo_graphs.objects",
    "Logs": "dynamo_graphs.logs",
    "Problem": "dynamo_operator.shared.problems",
    "installed_settings": "dynamo_graphs.offline",
}
"""The module of a name, unless it is `dynamo_graphs.fields`."""


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(_MODULES.get(name, "dynamo_graphs.fields")), name)
    raise AttributeError(f"module 'dynamo_graphs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
