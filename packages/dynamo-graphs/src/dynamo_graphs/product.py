"""The names under which the programs of this repository appear at the API server and in metrics."""

from functools import cache
from typing import Final

FIELD_MANAGER: Final = "dynamo-operator"
"""Field manager of server-side apply, in `metadata.managedFields` of every object."""

METRICS_PREFIX: Final = "dynamo_operator"
"""Prefix of the name of each metric."""


@cache
def version() -> str:
    """The version, such as `0.1.0`. Read on demand: looking it up costs as much as starting Python."""
    from importlib.metadata import version as of_package

    return of_package("dynamo-graphs")


def user_agent() -> str:
    """Program and version, as recorded in the audit log of an API server."""
    return f"{FIELD_MANAGER}/{version()}"
