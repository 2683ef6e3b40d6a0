"""The type of fields such as `size: 8Gi`: an integer or text, as Kubernetes writes amounts."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
PATTERN = rf"^(\+|-)?{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER}))?$"
"""Source: the schema that Kubernetes' own CustomResourceDefinitions give to a quantity."""


@dataclass(frozen=True, slots=True)
class QuantityMark:
    """Marks an annotated type as a quantity."""


Quantity: TypeAlias = Annotated[int | str, QuantityMark()]
