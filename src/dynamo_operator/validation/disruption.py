"""The rules of a disruption budget: one bound, and one that Kubernetes understands."""

import re
from collections.abc import Iterator

from dynamo_operator.api.component import ComponentSpec
from dynamo_operator.api.quantity import INT_OR_PERCENT_PATTERN
from dynamo_operator.validation import Problem, ProblemKind

_BOUND = re.compile(INT_OR_PERCENT_PATTERN, re.ASCII)
_MOST = 2**31 - 1


def disruption_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """What is wrong with a component's disruption budget."""
    budget = spec.disruption_budget
    if budget is None:
        return
    bounds = {"minAvailable": budget.min_available, "maxUnavailable": budget.max_unavailable}
    given = {field: bound for field, bound in bounds.items() if bound is not None}
    if len(given) > 1:
        message = "minAvailable and maxUnavailable cannot both be set"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    for field, bound in given.items():
        if not _is_bound(bound):
            message = (
                f'"{str(bound)[:60]}" is neither a number of pods nor a percentage such as 25%'
            )
            yield Problem(f"{path}.{field}", message)
    if given and spec.nodes > 1:
        message = "a budget is for components on one node; the pods of a group are one"
        yield Problem(path, message, ProblemKind.FORBIDDEN)


def _is_bound(bound: int | str) -> bool:
    if isinstance(bound, str) and bound.endswith("%"):
        return _BOUND.fullmatch(bound) is not None
    return _BOUND.fullmatch(str(bound)[:11]) is not None and 0 <= int(str(bound)[:11]) <= _MOST
