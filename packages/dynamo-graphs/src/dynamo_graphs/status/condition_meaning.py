"""One row of the catalog of conditions."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Meaning:
    """One row of the page: when a condition has this reason, and what a person should do."""

    kind: str
    condition: str
    status: str
    reason: StrEnum
    text: str
    advice: str
