"""The rules of updates, which compare an object with its previous state.

The replicas of a service with a scaling adapter belong to the adapter, yet users apply the whole graph again
and again. A manifest without replicas is fine. One with another number than the current would revert the
autoscaler, so it is refused, and the message says what to do instead.
"""

from collections.abc import Iterator
from typing import TypeAlias

from dynamo_graphs.api import names
from dynamo_graphs.api.component import DynamoComponentDeployment, has_adapter
from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.validation import Problem, ProblemKind, service_path

ROLLING = ("Pending", "InProgress")
_FRAMEWORK = "spec.backendFramework"
_WithFramework: TypeAlias = DynamoGraphDeployment | DynamoComponentDeployment


def may_scale(user: str, namespace: str, operator: str) -> bool:
    """Whether that user may change replicas that a scaling adapter owns.

    Only the operator may, under the user name that the API server knows it by, and the planner of the same
    namespace. An empty `operator` is unknown and matches no user.
    """
    planner = f"system:serviceaccount:{namespace}:{names.PLANNER_SERVICE_ACCOUNT}"
    return bool(user) and user in (operator, planner)


def graph_update_problems(
    old: DynamoGraphDeployment, new: DynamoGraphDeployment
) -> Iterator[Problem]:
    """Refuse changes of immutable fields by any user."""
    yield from framework_problems(old, new)
    before, after = old.spec.services, new.spec.services
    for key in sorted(before.keys() & after.keys()):
        if (before[key].nodes > 1) != (after[key].nodes > 1):
            message = (
                f"spec.services[{key}] cannot change node topology (between single-node and "
                "multi-node) after creation"
            )
            yield Problem(f"{service_path(key)}.multinode", message, ProblemKind.FORBIDDEN)
    changes = [
        f"services {verb}: [{' '.join(sorted(keys))}]"
        for verb, keys in (
            ("added", after.keys() - before.keys()),
            ("removed", before.keys() - after.keys()),
        )
        if keys
    ]
    if changes:
        message = (
            "service topology is immutable and cannot be modified after creation: "
            f"{', '.join(changes)}"
        )
        yield Problem("spec.services", message, ProblemKind.FORBIDDEN)
    yield from _restart_problems(old, new)


def framework_problems(old: _WithFramework, new: _WithFramework) -> Iterator[Problem]:
    """Refuse a change of the framework, the one immutable field of a component."""
    if (old.spec.backend_framework or "") != (new.spec.backend_framework or ""):
        message = f"{_FRAMEWORK} is immutable and cannot be changed after creation"
        yield Problem(_FRAMEWORK, message, ProblemKind.FORBIDDEN)


def framework_warnings(old: _WithFramework, new: _WithFramework) -> Iterator[Problem]:
    """Warn what a refused change of the framework would break."""
    if any(framework_problems(old, new)):
        yield Problem(_FRAMEWORK, f"Changing {_FRAMEWORK} may cause unexpected behavior")


def adapter_problems(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[Problem]:
    """Refuse changes of replicas that a scaling adapter owns; `may_scale` names the exceptions."""
    for key, service in sorted(new.spec.services.items()):
        if key not in old.spec.services or not has_adapter(service) or service.replicas is None:
            continue
        if service.replicas == base_replicas(old, key):
            continue
        adapter = names.component_name(new.metadata.name, key)
        message = (
            f"spec.services[{key}].replicas cannot be modified directly when scaling adapter is "
            "enabled; scale or update the related DynamoGraphDeploymentScalingAdapter instead: "
            f"kubectl scale dgdsa/{adapter} -n {new.metadata.namespace} "
            f"--replicas={service.replicas}, or leave replicas out of the manifest"
        )
        yield Problem(f"{service_path(key)}.replicas", message, ProblemKind.FORBIDDEN)


def _restart_problems(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[Problem]:
    """Refuse a restart while a managed rollout replaces the same pods."""
    rolling = old.status.rolling_update
    before = old.spec.restart.id if old.spec.restart else ""
    after = new.spec.restart.id if new.spec.restart else ""
    if after and after != before and rolling is not None and rolling.phase in ROLLING:
        message = (
            "spec.restart.id cannot be changed while a rolling update is in progress "
            f"(status.rollingUpdate.phase is {rolling.phase}); wait until it is Completed"
        )
        yield Problem("spec.restart.id", message, ProblemKind.FORBIDDEN)
