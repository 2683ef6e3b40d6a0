"""The names that `dynamo_graphs` exports, each imported with its first use."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynamo_graphs.library.circumstances import installed_settings
    from dynamo_graphs.library.graph import Graph
    from dynamo_graphs.library.objects import ApiObject, InvalidObject
    from dynamo_graphs.library.others import Component, Latency, Model, Request, ScalingAdapter
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
    "installed_settings": "library.circumstances",
}
"""Where a name is, unless in `library.others`."""


def __getattr__(name: str) -> object:
    if name in __all__:
        module = import_module(f"dynamo_graphs.{_MODULES.get(name, 'library.others')}")
        return getattr(module, name)
    raise AttributeError(f"module 'dynamo_graphs' has no attribute {name!r}")
