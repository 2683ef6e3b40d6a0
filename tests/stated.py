"""Graphs and components with statuses, as the API server returns them, for tests of what reads statuses."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.meta import Object

THEN = "2026-01-01T00:00:00Z"
NOW = datetime(2026, 1, 1, 0, 12, tzinfo=UTC)


def a_condition(type_: str, status: str, reason: str, message: str = "", generation: int = 1) -> Object:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": THEN,
        "observedGeneration": generation,
    }


READY = a_condition("Ready", "True", "all_resources_are_ready", "All resources are ready")


def metadata(**fields: Any) -> Object:
    """The metadata of an object named `chat`, unless overridden."""
    return {
        "namespace": "prod",
        "name": "chat",
        "uid": "u-chat",
        "generation": 1,
        "creationTimestamp": THEN,
        **fields,
    }


def counts(ready: int = 1, **fields: Any) -> Object:
    """The status of a service with one replica."""
    defaults = {"componentKind": "Deployment", "componentName": "x", "replicas": 1}
    return {**defaults, "updatedReplicas": 1, "readyReplicas": ready, **fields}


def late(reason: str, *pods: Object, message: str = "") -> Object:
    """The status of a service that is not ready for this reason, with its blocked pods."""
    return counts(0, reason=reason, message=message, blockedPods=pods)


def a_pod(reason: str, message: str = "", **fields: Any) -> Object:
    """A blocked pod in the status of a service."""
    return {"name": "chat-w-0", "container": "main", "reason": reason, "message": message, **fields}


def a_graph(
    *conditions: Object, services: Object | None = None, observed: int = 1, **fields: Any
) -> DynamoGraphDeployment:
    """A graph with these conditions and statuses of services."""
    services = services or {}
    status: Object = {"conditions": conditions, "services": services, "observedGeneration": observed}
    spec = {"services": {key: {"replicas": 1} for key in services}}
    body = {"metadata": metadata(**fields), "spec": spec, "status": status}
    return msgspec.convert(body, DynamoGraphDeployment)


def a_component(*conditions: Object, service: Object | None = None) -> DynamoComponentDeployment:
    status: Object = {"conditions": conditions, "observedGeneration": 1, "service": service}
    body = {"metadata": metadata(name="chat-w"), "spec": {"serviceName": "w"}, "status": status}
    return msgspec.convert(body, DynamoComponentDeployment)
