"""Types of fields that are an integer or text: `size: 8Gi`, `maxUnavailable: 25%`."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
PATTERN = rf"^(\+|-)?{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER}))?$"
"""Source: the schema that Kubernetes' own CustomResourceDefinitions give to a quantity."""


@dataclass(frozen=True, slots=True)
class QuantityMark:
    """Marks an annotated type as a quantity."""


Quantity: TypeAlias = Annotated[int | str, QuantityMark()]


@dataclass(frozen=True, slots=True)
class IntOrStringMark:
    """Marks an annotated type as an integer or any text."""


IntOrString: TypeAlias = Annotated[int | str, IntOrStringMark()]

INT_OR_PERCENT_PATTERN = r"^([0-9]+|(100|[0-9]{1,2})%)$"


@dataclass(frozen=True, slots=True)
class IntOrPercentMark:
    """Marks an annotated type as a number, or a percentage as text."""


IntOrPercent: TypeAlias = Annotated[int | str, IntOrPercentMark()]
