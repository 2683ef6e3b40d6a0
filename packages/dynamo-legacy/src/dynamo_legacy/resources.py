"""Requests and limits of that generation: amounts that every component has, and what the user says."""

from decimal import Decimal

from dynamo_graphs.api.component import ResourceItem, Resources
from kube_runtime.quantity import amount

_BASE = {"cpu": ("300m", "500m"), "memory": ("500Mi", "1Gi")}
"""Requests and limits of a component that says nothing. Source: the recorded operator."""
_SHARED_MEMORY = "64Mi"
"""Of a component without limit of its memory."""
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi")


def with_base(wanted: Resources | None) -> Resources:
    """The user's amounts, and the base where there are none.

    A base amount that contradicts the user's other side, a limit below a request, is left out: the API server
    would refuse the pod. GPUs are limits only; a request for them is ignored, as ever.
    """
    said = wanted or Resources()
    requests, limits = said.requests or ResourceItem(), said.limits or ResourceItem()
    lower, upper = _given(requests), _given(limits)
    for name, (least, most) in _BASE.items():
        if name not in upper and not _exceeds(lower.get(name), most):
            upper[name] = most
        if name not in lower and not _exceeds(least, upper.get(name)):
            lower[name] = least
    return Resources(
        ResourceItem(**lower, custom=requests.custom),
        ResourceItem(**upper, gpu=limits.gpu, gpu_type=limits.gpu_type, custom=limits.custom),
        said.claims,
    )


def shared_memory_size(resources: Resources) -> str:
    """The volume at /dev/shm: half of the limit of the memory."""
    limit = amount(resources.limits.memory or "") if resources.limits else None
    return _binary(limit / 2) if limit else _SHARED_MEMORY


def _given(item: ResourceItem) -> dict[str, str]:
    both = {"cpu": item.cpu, "memory": item.memory}
    return {name: value for name, value in both.items() if value}


def _exceeds(quantity: str | None, other: str | None) -> bool:
    """Whether an amount is larger than another one; validation reports invalid amounts."""
    left, right = amount(quantity or ""), amount(other or "")
    return left is not None and right is not None and left > right


def _binary(number: Decimal) -> str:
    """A number of bytes in the largest binary unit of which it is a whole number."""
    count = int(number)
    unit = 0
    while count and count % 1024 == 0 and unit < len(_UNITS) - 1:
        count, unit = count // 1024, unit + 1
    return f"{count}{_UNITS[unit]}"
