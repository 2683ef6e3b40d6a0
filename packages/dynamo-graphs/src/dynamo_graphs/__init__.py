"""DynamoGraphDeployments from manifest to objects and status, as pure functions.

`from dynamo_graphs import Graph` is the library for Python users. Each name is imported with its first use.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dynamo_graphs.graph import Graph
    from dynamo_graphs.objects import ApiObject, InvalidObject
    from dynamo_graphs.others import Component, Latency, Model, Request, ScalingAdapter
    from dynamo_operator.settings import installed_settings
    from dynamo_operator.shared.problems import Problem

__all__ = [
    "ApiObject",
    "Component",
    "Graph",
    "InvalidObject",
    "Latency",
    "Model",
    "Problem",
    "Request",
    "ScalingAdapter",
    "installed_settings",
]

_MODULES = {
    "ApiObject": "dynamo_graphs.objects",
    "Graph": "dynamo_graphs.graph",
    "InvalidObject": "dynamo_graphs.objects",
    "Problem": "dynamo_operator.shared.problems",
    "installed_settings": "dynamo_operator.settings",
}
"""The module of a name, unless it is `dynamo_graphs.others`."""


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        module = import_module(_MODULES.get(name, "dynamo_graphs.others"))
        return getattr(module, name)
    raise AttributeError(f"module 'dynamo_graphs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
