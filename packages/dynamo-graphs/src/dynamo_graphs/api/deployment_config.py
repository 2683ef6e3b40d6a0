"""The variable `DYN_DEPLOYMENT_CONFIG`: sizes of services in JSON, from an earlier version of Dynamo.

It is an environment variable of the user and part of the spec at the same time, so all code that needs the
replicas or GPUs of a service reads them here. It counts for components only: on Grove it is a variable like
any other.
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
    """A service of the graph with the sizes that the variable gives it; its own number of replicas wins."""
    spec = graph.spec.services[service]
    if is_on_grove(graph):
        return spec
    return sized(spec, config_of((*graph.spec.envs, *spec.envs)), service)


def sized(spec: S, config: Object, service: str) -> S:
    """A component with the sizes that the variable says of that service; its own number of replicas wins."""
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
    """The replicas that the user gives to a service, by its field, else by the variable, else 1."""
    return as_configured(graph, service).desired_replicas


def config_of(environment: Iterable[Object]) -> Object:
    """What the last such variable says, by services; {} if there is none, or it cannot be read."""
    texts = [variable.get("value") for variable in environment if variable.get("name") == VARIABLE]
    try:
        return _mapping(json.loads(texts[-1])) if texts and texts[-1] else {}
    except (ValueError, RecursionError):
        return {}  # validation has reported it


def _sizes(resources: Object) -> Object:
    """The amounts that are given as they have to be; validation has reported the others."""
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
    """The entries under lower-case names: below a service's entry, case does not count."""
    return {name.lower(): entry for name, entry in value.items()}
