"""Parse the configuration of a graph, `bento.yaml`, from untrusted text.

Unknown fields are ignored; known ones must have the right type.
"""

from collections.abc import Mapping

import msgspec

from dynamo_graphs.api.names import LABEL_LIMIT
from dynamo_graphs.files.yaml_reader import documents
from dynamo_legacy.names import GRAPH_CONFIG, GRAPH_CONFIG_KEY
from dynamo_legacy.types import GraphConfigMap, object_of
from kube_runtime.errors import ConfigError
from kube_runtime.kind import Key, Object


class GraphConfigError(ValueError):
    """The configuration is invalid; the message has path and cause."""


MOST_BYTES = 1024 * 1024
"""Most characters of the text, the limit of a ConfigMap."""
MOST_SERVICES = 250
"""Most services of a graph: each becomes an object with a workload."""


class GraphResources(msgspec.Struct, frozen=True):
    """Resources of one pod of a service; "" if not set."""

    cpu: str = ""
    memory: str = ""
    gpu: str = ""
    custom: dict[str, str] = {}


class GraphAutoscaling(msgspec.Struct, frozen=True):
    """Bounds of the replicas; None if not set."""

    min_replicas: int | None = None
    max_replicas: int | None = None


class GraphService(msgspec.Struct, frozen=True, kw_only=True):
    """One service of a graph.

    `is_dynamo`: it is served over the Dynamo runtime, as `dynamo_name` in `dynamo_namespace`; both may be "".
    `workers` are its replicas, unless an override sets them.
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
    """A graph: the class to start, the service that is exposed, and all services in order."""

    service: str = ""
    entry_service: str = ""
    services: tuple[GraphService, ...] = ()


def parse_graph_config(text: str) -> GraphConfig:
    """Parse a configuration.

    Raises:
        GraphConfigError: it is invalid; the message has path and cause.
    """
    if len(text) > MOST_BYTES:
        raise GraphConfigError(f"{GRAPH_CONFIG_KEY}: too large ({MOST_BYTES} characters at most)")
    try:
        loaded = documents(GRAPH_CONFIG_KEY, text)
    except ConfigError as error:
        raise GraphConfigError(str(error)) from error
    except ExceptionGroup as group:
        raise GraphConfigError("; ".join(map(str, group.exceptions[:3]))) from group
    if len(loaded) != 1:
        raise GraphConfigError(f"{GRAPH_CONFIG_KEY}: expected one document, found {len(loaded)}")
    root = _mapping(loaded[0].value, "the document")
    entries = _list(root.get("services"), "services")
    if len(entries) > MOST_SERVICES:
        raise GraphConfigError(f"services: too many ({MOST_SERVICES} at most)")
    services = tuple(_service(entry, f"services[{index}]") for index, entry in enumerate(entries))
    lowered: dict[str, str] = {}
    for name in (service.name for service in services):
        if (first := lowered.setdefault(name.lower(), name)) is not name:
            message = f'services: "{first}" and "{name}" are the same name in lower case'
            raise GraphConfigError(message)
    return GraphConfig(
        _text(root.get("service"), "service"),
        _text(root.get("entry_service"), "entry_service"),
        services,
    )


def graph_config_map(key: Key, tag_name: str, text: str) -> Object:
    """The ConfigMap with the configuration of a tag."""
    labels = {GRAPH_CONFIG: tag_name[:LABEL_LIMIT].rstrip("-.")}
    metadata = {"name": key.name, "namespace": key.namespace, "labels": labels}
    return object_of(GraphConfigMap, metadata, data={GRAPH_CONFIG_KEY: text})


def _service(value: object, path: str) -> GraphService:
    fields = _mapping(value, path)
    name = _text(fields.get("name"), f"{path}.name")
    if not name:
        raise GraphConfigError(f"{path}.name: missing name")
    config = _mapping(fields.get("config"), f"{path}.config")
    config_path = f"{path}.config"
    dynamo = _mapping(config.get("dynamo"), f"{config_path}.dynamo")
    is_dynamo = dynamo.get("enabled") or False
    if not isinstance(is_dynamo, bool):
        raise GraphConfigError(f"{config_path}.dynamo.enabled: expected true or false")
    dependencies = tuple(
        _text(
            _mapping(dependency, f"{path}.dependencies[{index}]").get("service"),
            f"{path}.dependencies",
        )
        for index, dependency in enumerate(
            _list(fields.get("dependencies"), f"{path}.dependencies")
        )
    )
    return GraphService(
        name=name,
        dependencies=dependencies,
        is_dynamo=is_dynamo,
        dynamo_namespace=_text(dynamo.get("namespace"), f"{config_path}.dynamo.namespace"),
        dynamo_name=_text(dynamo.get("name"), f"{config_path}.dynamo.name"),
        resources=_resources(config.get("resources"), f"{config_path}.resources"),
        autoscaling=_autoscaling(config.get("autoscaling"), f"{config_path}.autoscaling"),
        workers=_count(config.get("workers"), f"{config_path}.workers"),
    )


def _resources(value: object, path: str) -> GraphResources | None:
    if value is None:
        return None
    amounts = _mapping(value, path)
    custom = _mapping(amounts.get("custom"), f"{path}.custom")
    return GraphResources(
        cpu=_scalar(amounts.get("cpu"), f"{path}.cpu"),
        memory=_scalar(amounts.get("memory"), f"{path}.memory"),
        gpu=_scalar(amounts.get("gpu"), f"{path}.gpu"),
        custom={name: _scalar(amount, f"{path}.custom.{name}") for name, amount in custom.items()},
    )


def _autoscaling(value: object, path: str) -> GraphAutoscaling | None:
    if value is None:
        return None
    fields = _mapping(value, path)
    names = ("min_replicas", "max_replicas")
    return GraphAutoscaling(*(_count(fields.get(name), f"{path}.{name}") for name in names))


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
