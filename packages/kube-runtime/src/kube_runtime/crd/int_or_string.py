"""Types of fields that are an integer or text: `size: 8Gi`, `maxUnavailable: 25%`, `timeout: 30m`."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
PATTERN = rf"^(\+|-)?{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER}))?$"
"""Source: the schema that Kubernetes' own CustomResourceDefinitions give to a quantity."""
INT_OR_PERCENT_PATTERN = r"^([0-9]+|(100|[0-9]{1,2})%)$"


@dataclass(frozen=True, slots=True)
class IntOrText:
    """Marks an annotated type as an integer or text: what it is called, and the pattern of the text."""

    name: str
    pattern: str = ""


Quantity: TypeAlias = Annotated[int | str, IntOrText("quantity", PATTERN)]
IntOrPercent: TypeAlias = Annotated[
    int | str, IntOrText("integer or percentage", INT_OR_PERCENT_PATTERN)
]
Duration: TypeAlias = Annotated[int | str, IntOrText("duration")]
