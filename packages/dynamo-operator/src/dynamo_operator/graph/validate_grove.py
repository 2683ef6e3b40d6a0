"""The rules of fields that only graphs on Grove may have, and of topology.

Whether a graph is on Grove depends on the cluster, so admission applies them, and offline checks do not.
"""

from collections.abc import Iterator
from typing import Final

from dynamo_operator import labels
from dynamo_operator.component.validate_experimental import INTER_POD, mode, topology_problem
from dynamo_operator.features.grove.render import UPDATE_STRATEGIES
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import COMPONENT, GROVE
from dynamo_operator.shared.problems import (
    Problem,
    ProblemKind,
    is_subdomain,
    name_problems,
    service_path,
    shown,
)
from kube_runtime.types.meta import Fields

NOT_ON_GROVE: Final = "is currently supported only for Grove-backed DynamoGraphDeployment components"


def min_available_problem(path: str) -> Problem:
    """The problem of `minAvailable` in the spec at `path`, of a component that is not on Grove."""
    return Problem(f"{path}.minAvailable", NOT_ON_GROVE, ProblemKind.FORBIDDEN)


def grove_only_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Problems of a graph that is not on Grove, as the user wrote it."""
    why = f"requires the Grove pathway{_why_not(graph)}"
    if graph.spec.priority_class_name:
        yield Problem("spec.priorityClassName", why, ProblemKind.FORBIDDEN)
    if _policy(graph).get("clusterTopologyName"):
        at = "spec.experimental.kvTransferPolicy.clusterTopologyName"
        yield Problem(at, why, ProblemKind.FORBIDDEN)
    for key, service in sorted(graph.spec.services.items()):
        if service.min_available is not None:
            yield min_available_problem(service_path(key))
        if mode(service.gpu_memory_service) == INTER_POD:
            yield Problem(f"{service_path(key)}.gpuMemoryService.mode", why, ProblemKind.FORBIDDEN)


def _why_not(graph: DynamoGraphDeployment) -> str:
    annotations = graph.metadata.annotations
    provider, switch = annotations.get(labels.WORKLOAD_PROVIDER), annotations.get(labels.ENABLE_GROVE, "")
    if provider == COMPONENT:
        return f', but workload provider "{COMPONENT}" is selected'
    if provider is not None:
        return f', but annotation "{labels.WORKLOAD_PROVIDER}" has unsupported value "{provider}"'
    if switch.lower() == "false":
        return f'; remove or unset annotation "{labels.ENABLE_GROVE}" (currently "{switch}")'
    return f', but workload provider "{COMPONENT}" is selected'


def provider_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report a provider that does not exist, on which the graph would never run."""
    provider = graph.metadata.annotations.get(labels.WORKLOAD_PROVIDER)
    if provider not in (None, COMPONENT, GROVE):
        message = f'unsupported value {shown(provider)} (expected "{COMPONENT}" or "{GROVE}")'
        at = f"metadata.annotations[{labels.WORKLOAD_PROVIDER}]"
        yield Problem(at, message, ProblemKind.NOT_SUPPORTED)
    strategy = graph.metadata.annotations.get(labels.GROVE_UPDATE_STRATEGY)
    if strategy is not None and strategy not in UPDATE_STRATEGIES:
        expected = " or ".join(f'"{name}"' for name in UPDATE_STRATEGIES)
        message = f"unsupported value {shown(strategy)} (expected {expected})"
        at = f"metadata.annotations[{labels.GROVE_UPDATE_STRATEGY}]"
        yield Problem(at, message, ProblemKind.NOT_SUPPORTED)


def least_problems(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[Problem]:
    """Refuse another `minAvailable` than the default, 1, with which the set of a graph on Grove was created.

    The schema refuses changes of one that is written.
    """
    for key, service in sorted(new.spec.services.items()):
        before = old.spec.services.get(key)
        if before is not None and before.min_available is None and (service.min_available or 1) != 1:
            path = f"{service_path(key)}.minAvailable"
            message = "minAvailable is immutable after creation; left out, it is 1"
            yield Problem(path, message, ProblemKind.FORBIDDEN)


def topology_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Problems of the topology constraints and of inter-pod GPU memory, wherever the graph runs."""
    constraint = graph.spec.topology_constraint
    constrained = [key for key, service in graph.spec.services.items() if service.topology_constraint]
    path = "spec.topologyConstraint"
    if constrained and constraint is None:
        message = "is required when any component topology constraint is set"
        yield Problem(path, message, ProblemKind.REQUIRED)
    if constraint is not None and not constrained and not constraint.get("packDomain"):
        message = "is required when no component topologyConstraint is set"
        yield Problem(f"{path}.packDomain", message, ProblemKind.REQUIRED)
    name = _policy(graph).get("clusterTopologyName")
    if isinstance(name, str) and name and not is_subdomain(name):
        at = "spec.experimental.kvTransferPolicy.clusterTopologyName"
        yield from name_problems(name, at, "a cluster topology")
    for key, service in sorted(graph.spec.services.items()):
        backend = graph.spec.backend_framework or "<unset>"
        if mode(service.gpu_memory_service) == INTER_POD and backend != "vllm":
            layout = "the inter-pod GMS layout is currently supported only for vLLM"
            message = f"{layout} (detected backend: {backend})"
            yield Problem(f"{service_path(key)}.gpuMemoryService.mode", message)


def topology_update_problems(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[Problem]:
    """Refuse changes of topology constraints and of the transfer policy."""
    if old.spec.topology_constraint != new.spec.topology_constraint:
        yield topology_problem("spec.topologyConstraint", DynamoGraphDeployment.KIND.name)
    if _comparable(_policy(old)) != _comparable(_policy(new)):
        message = (
            "is immutable and cannot be added, removed, or changed after creation; delete and recreate the "
            "DynamoGraphDeployment to change the KV transfer policy"
        )
        yield Problem("spec.experimental.kvTransferPolicy", message, ProblemKind.FORBIDDEN)


def _policy(graph: DynamoGraphDeployment) -> Fields:
    return (graph.spec.experimental or {}).get("kvTransferPolicy") or {}


def _comparable(policy: Fields) -> Fields:
    return {"enforcement": "required", **policy} if policy else {}
