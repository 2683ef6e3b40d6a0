"""DynamoGraphDeployments from manifest to objects and status, as pure functions.

`from dynamo_graphs import Graph` is the library for Python users. Each name is imported with its first use.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dynamo_graphs.library.graph import Graph
    from dynamo_graphs.library.objects import ApiObject, InvalidObject
    from dynamo_graphs.library.others import Component, Latency, Model, Request, ScalingAdapter
    from dynamo_graphs.settings import installed_settings
    from dynamo_graphs.validation import Problem

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
    "ApiObject": "library.objects",
    "Graph": "library.graph",
    "InvalidObject": "library.objects",
    "Problem": "validation",
    "installed_settings": "settings",
}
"""The module of a name, unless it is `library.others`."""


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        module = import_module(f"dynamo_graphs.{_MODULES.get(name, 'library.others')}")
        return getattr(module, name)
    raise AttributeError(f"module 'dynamo_graphs' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
