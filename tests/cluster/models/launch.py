"""How a test starts an operator whose workers are a fleet."""

import os
from pathlib import Path

from simulated.lora_fleet import REDIRECT, Fleet

MODELS_PROGRAM = "cluster.models.process"
"""Takes the place of `dynamo_operator` in `OperatorProcess`."""


def workers_at(fleet: Fleet) -> dict[str, str]:
    """The variables by which that program finds the fleet, and the modules of the tests."""
    folders = (str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", ""))
    return {REDIRECT: fleet.url, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
