"""The account of the operator itself, which pods of users may not run as.

Who may write a graph chooses the account of its pods. In the operator's own namespace that could be the
operator's: then a right to write graphs there would be a right to everything that the operator may do.
"""

from collections.abc import Iterator

from dynamo_operator.api.component import ComponentSpec
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation import Problem, ProblemKind


def own_account_problems(
    spec: ComponentSpec, namespace: str, path: str, settings: RenderSettings
) -> Iterator[Problem]:
    """A problem for each field that names the operator's account, in the operator's namespace."""
    pod = spec.extra_pod_spec
    if not settings.operator_account or not isinstance(pod, dict):
        return
    for field in ("serviceAccountName", "serviceAccount"):
        if pod.get(field) and f"{namespace}/{pod[field]}" == settings.operator_account:
            message = f'"{pod[field]}" is the account of the operator itself, which no pod may have'
            yield Problem(f"{path}.extraPodSpec.{field}", message, ProblemKind.FORBIDDEN)
