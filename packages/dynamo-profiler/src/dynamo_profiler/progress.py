"""The progress of a run: its phases, by the names that a request's status shows."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

T = TypeVar("T")


class Phase(Enum):
    """The phases in order."""

    INITIALIZING = "Initializing"
    SWEEPING_PREFILL = "SweepingPrefill"
    SWEEPING_DECODE = "SweepingDecode"
    SELECTING_CONFIG = "SelectingConfig"
    BUILDING_CURVES = "BuildingCurves"
    GENERATING_DGD = "GeneratingDGD"
    DONE = "Done"


@dataclass(frozen=True, slots=True)
class Progress:
    """One step in one line."""

    phase: Phase
    message: str


def run_steps(steps: Generator[Progress, None, T], on_step: Callable[[Progress], object]) -> T:
    """Run a generator of steps to its end, call `on_step` with each, and return its result."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
        on_step(step)
