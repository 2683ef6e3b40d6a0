"""ServiceAccounts that pods of a graph may not run as: the operator's, and those that it creates for others.

The author of a graph chooses the ServiceAccount of its pods. In the operator's own namespace that could be
the operator's: then permission to write graphs would include everything that the operator may do.
"""

from collections.abc import Iterator

from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.api.names import PLANNER_SERVICE_ACCOUNT, PROFILING_SERVICE_ACCOUNT
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind

_PLANNER = "planner"


def account_problems(
    spec: ComponentSpec, namespace: str, path: str, settings: RenderSettings
) -> Iterator[Problem]:
    """A problem for each field that names a ServiceAccount which this component's pods may not have."""
    pod = spec.extra_pod_spec
    if not isinstance(pod, dict):
        return
    for field in ("serviceAccountName", "serviceAccount"):
        name = pod.get(field)
        if isinstance(name, str) and (why := _refusal(name, spec, namespace, settings)):
            yield Problem(f"{path}.extraPodSpec.{field}", f'"{name}" {why}', ProblemKind.FORBIDDEN)


def _refusal(name: str, spec: ComponentSpec, namespace: str, settings: RenderSettings) -> str:
    if name and f"{namespace}/{name}" == settings.operator_account:
        return "is the operator's own ServiceAccount, which no pod may use"
    if name == PROFILING_SERVICE_ACCOUNT:
        return "is the ServiceAccount of profiling Jobs, which no graph may use"
    if name == PLANNER_SERVICE_ACCOUNT and spec.component_type != _PLANNER:
        return f"is the ServiceAccount of planners (expected componentType {_PLANNER})"
    return ""
