"""Graphs as Python objects, and the clusters that they run in.

`from dynamo_graphs import Graph` is the library for Python users. Each name is imported with its first use.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dynamo_graphs.advice import Cause
    from dynamo_graphs.changes import Change, Effect
    from dynamo_graphs.edits import Edited
    from dynamo_graphs.events import Event
    from dynamo_graphs.explanation import Explanation
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
    from dynamo_graphs.frontend import Completion
    from dynamo_graphs.graph import ApiObject, AsyncCluster, Cluster, Exists, Graph, NotReady
    from dynamo_graphs.history import Revision, Undone
    from dynamo_graphs.logs import Logs
    from dynamo_graphs.objects import InvalidObject
    from dynamo_graphs.offline import installed_settings
    from dynamo_graphs.others import Component, Latency, Model, Request, ScalingAdapter
    from dynamo_graphs.ownership import Applied
    from dynamo_graphs.rows import Rows
    from dynamo_operator.shared.problems import Problem

__all__ = [
    "ApiObject",
    "Applied",
    "AsyncCluster",
    "Cause",
    "Change",
    "Cluster",
    "Completion",
    "Component",
    "DisruptionBudget",
    "Edited",
    "Effect",
    "EnvVar",
    "EnvVarSource",
    "Event",
    "Exists",
    "Explanation",
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
    "Revision",
    "Rows",
    "ScalingAdapter",
    "SharedMemory",
    "Toleration",
    "Undone",
    "VolumeMount",
    "installed_settings",
]

_NAMES = {
    "dynamo_graphs.advice": ("Cause",),
    "dynamo_graphs.changes": ("Change", "Effect"),
    "dynamo_graphs.edits": ("Edited",),
    "dynamo_graphs.events": ("Event",),
    "dynamo_graphs.explanation": ("Explanation",),
    "dynamo_graphs.frontend": ("Completion",),
    "dynamo_graphs.graph": ("ApiObject", "AsyncCluster", "Cluster", "Exists", "Graph", "NotReady"),
    "dynamo_graphs.history": ("Revision", "Undone"),
    "dynamo_graphs.logs": ("Logs",),
    "dynamo_graphs.objects": ("InvalidObject",),
    "dynamo_graphs.offline": ("installed_settings",),
    "dynamo_graphs.others": ("Component", "Latency", "Model", "Request", "ScalingAdapter"),
    "dynamo_graphs.ownership": ("Applied",),
    "dynamo_graphs.rows": ("Rows",),
    "dynamo_operator.shared.problems": ("Problem",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}
"""The module of a name, unless it is `dynamo_graphs.fields`."""


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        return getattr(import_module(_MODULES.get(name, "dynamo_graphs.fields")), name)
    raise AttributeError(f"module 'dynamo_graphs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
