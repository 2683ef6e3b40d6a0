"""The variable `DYN_DEPLOYMENT_CONFIG`: sizes of services in JSON, from an earlier generation.

Source: specification `rendering` 10.2. It is an environment variable of the user and part of the spec at the
same time, so everybody who asks how many replicas a service has must ask here as well.
"""

import json
from collections.abc import Iterable
from typing import Any

from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.kube.kind import Object

VARIABLE = "DYN_DEPLOYMENT_CONFIG"


def config_of(environment: Iterable[Object]) -> Object:
    """What the last such variable says, by services; {} if there is none, or it cannot be read."""
    texts = [each.get("value") for each in environment if each.get("name") == VARIABLE]
    try:
        return mapping(json.loads(texts[-1])) if texts and texts[-1] else {}
    except ValueError:
        return {}  # validation has reported it


def arguments_of(config: Object, service: str) -> Object:
    """The service's own `ServiceArgs`; {} if there are none."""
    return folded(mapping(folded(mapping(config.get(service))).get("serviceargs")))


def workers_of(config: Object, service: str) -> int | None:
    """The replicas that the variable gives to a service. None means: it says nothing."""
    found = arguments_of(config, service).get("workers")
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def base_replicas(graph: DynamoGraphDeployment, service: str) -> int:
    """The replicas that the user gives to a service, by its field, else by the variable, else 1."""
    spec = graph.spec.services[service]
    if spec.replicas is not None:
        return spec.replicas
    said = workers_of(config_of((*graph.spec.envs, *spec.envs)), service)
    return 1 if said is None else said


def mapping(value: Any) -> Object:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def folded(value: Object) -> Object:
    """The entries under lower-case names: below a service's entry, case does not count."""
    return {name.lower(): each for name, each in value.items()}
