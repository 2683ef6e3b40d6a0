"""The configuration of a graph, `bento.yaml`: parsed from text of unknown origin.

Only what this generation reads is kept. Anything else may be there; what is there has to have its type.
"""

from collections.abc import Mapping

import msgspec

from dynamo_graphs.files.yaml_reader import documents
from dynamo_legacy.names import GRAPH_CONFIG_KEY
from kube_runtime.errors import ConfigError


class GraphConfigError(ValueError):
    """A configuration of a graph that cannot be used; the message says where and why."""


MOST_BYTES = 1024 * 1024
"""Of the text. A ConfigMap holds no more."""
MOST_SERVICES = 250
"""Services of one graph: each becomes an object with a workload."""


class GraphResources(msgspec.Struct, frozen=True):
    """What one pod of a service needs; "" is not given."""

    cpu: str = ""
    memory: str = ""
    gpu: str = ""
    custom: dict[str, str] = {}


class GraphAutoscaling(msgspec.Struct, frozen=True):
    """Bounds of the replicas. None means: not given."""

    min_replicas: int | None = None
    max_replicas: int | None = None


class GraphService(msgspec.Struct, frozen=True, kw_only=True):
    """One member of a graph.

    `is_dynamo` is whether it is served over the Dynamo runtime, as `dynamo_name` in `dynamo_namespace`; both
    may be "". `workers` are replicas, unless an override says how many.
    """

    name: str
    dependencies: tuple[str, ...] = ()
    is_dynamo: bool = False
    dynamo_namespace: str = ""
    dynamo_name: str = ""
    resources: GraphResources | None = None
    autoscaling: GraphAutoscaling | None = None
    workers: int | None = None


class GraphConfig(msgspec.Struct, frozen=True):
    """A graph: what is started, which service is reached from outside, its services in order."""

    service: str = ""
    entry_service: str = ""
    services: tuple[GraphService, ...] = ()


def parse_graph_config(text: str) -> GraphConfig:
    """The configuration that a text contains.

    Raises:
        GraphConfigError: it cannot be used; the message says where and why.
    """
    if len(text) > MOST_BYTES:
        raise GraphConfigError(f"{GRAPH_CONFIG_KEY}: too large ({MOST_BYTES} characters at most)")
    try:
        found = documents(GRAPH_CONFIG_KEY, text)
    except ConfigError as error:
        raise GraphConfigError(str(error)) from error
    except ExceptionGroup as group:
        raise GraphConfigError("; ".join(map(str, group.exceptions[:3]))) from group
    if len(found) != 1:
        raise GraphConfigError(f"{GRAPH_CONFIG_KEY}: expected one document, found {len(found)}")
    root = _mapping(found[0].value, "the document")
    entries = _list(root.get("services"), "services")
    if len(entries) > MOST_SERVICES:
        raise GraphConfigError(f"services: too many ({MOST_SERVICES} at most)")
    services = tuple(_service(each, f"services[{index}]") for index, each in enumerate(entries))
    lowered: dict[str, str] = {}
    for each in services:
        other = lowered.setdefault(each.name.lower(), each.name)
        if other is not each.name:
            raise GraphConfigError(
                f'services: "{other}" and "{each.name}" are the same name in lower case'
            )
    return GraphConfig(
        _text(root.get("service"), "service"),
        _text(root.get("entry_service"), "entry_service"),
        services,
    )


def _service(value: object, path: str) -> GraphService:
    found = _mapping(value, path)
    name = _text(found.get("name"), f"{path}.name")
    if not name:
        raise GraphConfigError(f"{path}.name: missing name")
    config = _mapping(found.get("config"), f"{path}.config")
    at = f"{path}.config"
    dynamo = _mapping(config.get("dynamo"), f"{at}.dynamo")
    is_dynamo = dynamo.get("enabled") or False
    if not isinstance(is_dynamo, bool):
        raise GraphConfigError(f"{at}.dynamo.enabled: expected true or false")
    dependencies = tuple(
        _text(
            _mapping(each, f"{path}.dependencies[{index}]").get("service"), f"{path}.dependencies"
        )
        for index, each in enumerate(_list(found.get("dependencies"), f"{path}.dependencies"))
    )
    return GraphService(
        name=name,
        dependencies=dependencies,
        is_dynamo=is_dynamo,
        dynamo_namespace=_text(dynamo.get("namespace"), f"{at}.dynamo.namespace"),
        dynamo_name=_text(dynamo.get("name"), f"{at}.dynamo.name"),
        resources=_resources(config.get("resources"), f"{at}.resources"),
        autoscaling=_autoscaling(config.get("autoscaling"), f"{at}.autoscaling"),
        workers=_count(config.get("workers"), f"{at}.workers"),
    )


def _resources(value: object, path: str) -> GraphResources | None:
    if value is None:
        return None
    found = _mapping(value, path)
    custom = _mapping(found.get("custom"), f"{path}.custom")
    return GraphResources(
        cpu=_scalar(found.get("cpu"), f"{path}.cpu"),
        memory=_scalar(found.get("memory"), f"{path}.memory"),
        gpu=_scalar(found.get("gpu"), f"{path}.gpu"),
        custom={name: _scalar(each, f"{path}.custom.{name}") for name, each in custom.items()},
    )


def _autoscaling(value: object, path: str) -> GraphAutoscaling | None:
    if value is None:
        return None
    found = _mapping(value, path)
    bounds = (
        _count(found.get(name), f"{path}.{name}") for name in ("min_replicas", "max_replicas")
    )
    return GraphAutoscaling(*bounds)


def _mapping(value: object, path: str) -> Mapping[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise GraphConfigError(f"{path}: expected a mapping")
    return value


def _list(value: object, path: str) -> list[object]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise GraphConfigError(f"{path}: expected a list")
    return value


def _text(value: object, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise GraphConfigError(f"{path}: expected a string")
    return value


def _scalar(value: object, path: str) -> str:
    """A string, or a number as one."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise GraphConfigError(f'{path}: expected an amount such as "2"')
    return "" if value is None else str(value)


def _count(value: object, path: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
        raise GraphConfigError(f"{path}: expected a number of replicas")
    return value
