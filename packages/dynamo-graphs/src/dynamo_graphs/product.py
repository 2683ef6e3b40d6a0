"""What the programs of this repository call themselves, towards the API server and in metrics."""

from functools import cache
from typing import Final

FIELD_MANAGER: Final = "dynamo-operator"
"""The manager of what is applied, in `metadata.managedFields` of every object."""

METRICS_PREFIX: Final = "dynamo_operator"
"""What the name of each metric begins with."""


@cache
def version() -> str:
    """The version, such as `0.1.0`. Read on demand: finding it costs as much as starting Python."""
    from importlib.metadata import version as of_package

    return of_package("dynamo-graphs")


def user_agent() -> str:
    """The program and its version, as the audit log of an API server records them."""
    return f"{FIELD_MANAGER}/{version()}"
