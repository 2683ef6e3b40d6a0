"""The rules of a disruption budget: one bound, and one that Kubernetes understands."""

import re
from collections.abc import Iterator

from dynamo_graphs.api.component import ComponentSpec
from dynamo_graphs.validation import Problem, ProblemKind
from kube_runtime.crd.int_or_string import INT_OR_PERCENT_PATTERN

_BOUND = re.compile(INT_OR_PERCENT_PATTERN, re.ASCII)
_MOST = 2**31 - 1


def disruption_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of a component's disruption budget."""
    budget = spec.disruption_budget
    if budget is None:
        return
    bounds = {"minAvailable": budget.min_available, "maxUnavailable": budget.max_unavailable}
    given = {field: bound for field, bound in bounds.items() if bound is not None}
    if len(given) > 1:
        message = "minAvailable and maxUnavailable must not both be set"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    for field, bound in given.items():
        if not _is_bound(bound):
            message = (
                f'invalid bound "{str(bound)[:60]}" (expected a number of pods or a percentage, '
                "for example 25%)"
            )
            yield Problem(f"{path}.{field}", message)
    if given and spec.nodes > 1:
        message = (
            "budgets apply to single-node components only; the pods of a multinode group "
            "are one unit"
        )
        yield Problem(path, message, ProblemKind.FORBIDDEN)


def _is_bound(bound: int | str) -> bool:
    if isinstance(bound, str) and bound.endswith("%"):
        return _BOUND.fullmatch(bound) is not None
    return _BOUND.fullmatch(str(bound)[:11]) is not None and 0 <= int(str(bound)[:11]) <= _MOST
