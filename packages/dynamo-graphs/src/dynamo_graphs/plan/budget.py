"""How far a managed rollout may go beyond and below the wanted replicas.

The annotations are those of a Deployment with a native rollout, and mean the same: a number, or a
percentage of the wanted replicas, of which surge is rounded up and unavailable down.
"""

import re
from dataclasses import dataclass

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import ComponentSpec

_AMOUNT = re.compile(r"(?P<number>\d{1,9})(?P<percent>%)?", re.ASCII)
_DEFAULT = {"number": "25", "percent": "%"}
"""Also for what validation refuses, and lets pass where it means nothing."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Replicas beyond the wanted ones that may exist, and wanted ones that may be missing; not both 0."""

    surge: int
    unavailable: int


def budget(service: ComponentSpec, wanted: int) -> Budget:
    """The budget of a service that is to have so many replicas."""
    extra = service.extra_pod_metadata.annotations if service.extra_pod_metadata else {}
    said = service.annotations | extra
    surge = _amount(said.get(labels.MAX_SURGE), wanted, rounds_up=True)
    unavailable = _amount(said.get(labels.MAX_UNAVAILABLE), wanted, rounds_up=False)
    unavailable = min(unavailable, wanted)
    return Budget(surge, unavailable) if surge or unavailable else Budget(1, 0)


def is_recreated(service: ComponentSpec) -> bool:
    """Whether the old pods must be gone before there are new ones; then there is no budget."""
    return service.annotations.get(labels.STRATEGY) == "Recreate"


def _amount(text: str | None, wanted: int, *, rounds_up: bool) -> int:
    match = _AMOUNT.fullmatch(text or "") or _DEFAULT
    number = int(match["number"])
    if not match["percent"]:
        return number
    share = number * wanted
    return -(-share // 100) if rounds_up else share // 100
