"""Requests and limits: valid quantities that agree with each other."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

from dynamo_graphs.api.component import ResourceItem, Resources
from dynamo_graphs.api.devices import GPU
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.syntax import is_qualified_name
from kube_runtime.kind import Fields
from kube_runtime.quantity import amount, is_whole

_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage"))


class _Entry(NamedTuple):
    path: str
    amount: Decimal


def quantity_problems(text: object, path: str) -> Iterator[Problem]:
    """Report a value that is negative or not a quantity."""
    number = amount(text) if isinstance(text, str | int) and not isinstance(text, bool) else None
    if number is None:
        expected = "expected a number, for example 2, 500m or 16Gi"
        yield Problem(path, f'invalid quantity "{text}" ({expected})')
    elif number < 0:
        yield Problem(path, f'invalid quantity "{text}" (must not be negative)')


def resource_problems(
    container: Fields, container_path: str, component: Resources | None, path: str
) -> Iterator[Problem]:
    """Problems of the container's resources, with the component's short form merged over them."""
    short = component or Resources()
    sides: dict[str, dict[str, _Entry]] = {}
    opposite = {"requests": short.limits, "limits": short.requests}
    for side, item in (("requests", short.requests), ("limits", short.limits)):
        written = {
            name: (f"{container_path}.{side}[{name}]", value)
            for name, value in (container.get(side) or {}).items()
            if value is not None
        }
        written |= _written(item, opposite[side], f"{path}.{side}")
        for name, (at, value) in written.items():
            yield from _entry_problems(name, value, at)
        sides[side] = {
            name: _Entry(at, number)
            for name, (at, value) in written.items()
            if isinstance(value, str | int) and (number := amount(value)) is not None
        }
    yield from _agreement_problems(sides["requests"], sides["limits"])


def _written(
    item: ResourceItem | None, opposite: ResourceItem | None, path: str
) -> dict[str, tuple[str, str]]:
    """The path and amount of each resource in the short form, by its Kubernetes name."""
    if item is None:
        return {}
    gpu = item.gpu_type or (opposite.gpu_type if opposite else None) or GPU
    fixed = {
        "cpu": (f"{path}.cpu", item.cpu),
        "memory": (f"{path}.memory", item.memory),
        gpu: (f"{path}.gpu", item.gpu),
    }
    custom = {name: (f"{path}.custom[{name}]", value) for name, value in item.custom.items()}
    return {name: (at, value) for name, (at, value) in (fixed | custom).items() if value}


def _entry_problems(name: str, value: Any, path: str) -> Iterator[Problem]:
    is_known = name in _NATIVE or name.startswith("hugepages-") or "/" in name
    if not is_known or not is_qualified_name(name):
        yield Problem(
            path,
            f'unknown resource "{name}" (expected cpu, memory, ephemeral-storage, '
            "hugepages-<size> or a name with a domain such as nvidia.com/gpu)",
            ProblemKind.NOT_SUPPORTED,
        )
    problems = list(quantity_problems(value, path))
    yield from problems
    if (
        not problems
        and "/" in name
        and (number := amount(value)) is not None
        and not is_whole(number)
    ):
        yield Problem(path, f'invalid quantity "{value}" of {name} (expected a whole number)')


def _agreement_problems(
    requests: Mapping[str, _Entry], limits: Mapping[str, _Entry]
) -> Iterator[Problem]:
    for name in sorted(requests.keys() & limits.keys()):
        request, limit = requests[name], limits[name]
        is_shared = name in _NATIVE or "kubernetes.io/" in name
        if not is_shared and request.amount != limit.amount:
            yield Problem(
                request.path,
                f"request and limit of {name} must be equal, because it cannot be overcommitted",
            )
        elif request.amount > limit.amount:
            yield Problem(request.path, f"the request of {name} must not exceed its limit")
