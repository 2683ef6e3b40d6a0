"""Phases of the profiler, in the words that a request shows."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Phase(Enum):
    """The steps, in their order."""

    INITIALIZING = "Initializing"
    SWEEPING_PREFILL = "SweepingPrefill"
    SWEEPING_DECODE = "SweepingDecode"
    SELECTING_CONFIG = "SelectingConfig"
    BUILDING_CURVES = "BuildingCurves"
    GENERATING_DGD = "GeneratingDGD"
    DONE = "Done"


@dataclass(frozen=True, slots=True)
class Progress:
    """What is being done, or was found, in one line."""

    phase: Phase
    message: str


def followed(steps: Generator[Progress, None, T], seen: Callable[[Progress], object]) -> T:
    """What the steps return; `seen` is called with each of them."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        seen(step)
