"""The variable `DYN_DEPLOYMENT_CONFIG` of earlier Dynamo versions: replicas and resources of services.

It is an environment variable of the user that acts as part of the spec, so all code that needs the
replicas or GPUs of a service reads them here. It has no effect on Grove.
"""

import json
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.component_fields import ResourceItem, Resources
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.kind import Fields, Object

S = TypeVar("S", bound=ComponentSpec)

VARIABLE = "DYN_DEPLOYMENT_CONFIG"


def as_configured(graph: DynamoGraphDeployment, service: str) -> ComponentSpec:
    """Return a service with the replicas and resources from the variable; `replicas` in the spec wins."""
    spec = graph.spec.services[service]
    if is_on_grove(graph):
        return spec
    return sized(spec, config_of((*graph.spec.envs, *spec.envs)), service)


def sized(spec: S, config: Object, service: str) -> S:
    """Return the spec with replicas and resources from `config`; `replicas` in the spec wins."""
    arguments = folded(_mapping(folded(_mapping(config.get(service))).get("serviceargs")))
    workers = arguments.get("workers")
    if spec.replicas is None and isinstance(workers, int) and not isinstance(workers, bool):
        spec = replace(spec, replicas=workers)
    if sizes := _sizes(folded(_mapping(arguments.get("resources")))):
        old = spec.resources or Resources()
        requests = replace(old.requests or ResourceItem(), **sizes)
        limits = replace(old.limits or ResourceItem(), **sizes)
        spec = replace(spec, resources=replace(old, requests=requests, limits=limits))
    return spec


def base_replicas(graph: DynamoGraphDeployment, service: str) -> int:
    """The replicas that the user sets for a service: by its field, else by the variable, else 1."""
    return as_configured(graph, service).desired_replicas


def config_of(environment: Iterable[Object]) -> Object:
    """Return the value of the last such variable, by service; {} if it is missing or unreadable."""
    texts = [variable.get("value") for variable in environment if variable.get("name") == VARIABLE]
    try:
        return _mapping(json.loads(texts[-1])) if texts and texts[-1] else {}
    except (ValueError, RecursionError):
        return {}  # validation has reported it


def _sizes(resources: Object) -> Object:
    """The valid amounts; validation reports the others."""
    texts = {name: resources.get(name) for name in ("cpu", "memory", "gpu")}
    sizes: Object = {
        name: amount for name, amount in texts.items() if amount and isinstance(amount, str)
    }
    custom = _mapping(resources.get("custom"))
    if custom and all(isinstance(amount, str) for amount in custom.values()):
        sizes["custom"] = custom
    return sizes


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def folded(value: Fields) -> Object:
    """Return the entries under lower-case names: names below a service are case-insensitive."""
    return {name.lower(): entry for name, entry in value.items()}
