"""Phases of the profiler, in the words that a request shows."""

from dataclasses import dataclass
from enum import Enum


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
