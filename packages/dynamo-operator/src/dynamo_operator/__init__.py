"""A Kubernetes operator for NVIDIA Dynamo inference graphs.

Here are the names under which its programs appear at the API server and in metrics, and the way to the older
generation. Every program imports this, so it imports nothing.
"""

from functools import cache
from typing import Final

FIELD_MANAGER: Final = "dynamo-operator"
"""Field manager of server-side apply, in `metadata.managedFields` of every object."""

METRICS_PREFIX: Final = "dynamo_operator"
"""Prefix of the name of each metric."""


_VERSION: Final = "0.1.0"


def version() -> str:
    """The version, as in `pyproject.toml`: looking it up in the installed package costs as much as Python."""
    return _VERSION


def user_agent() -> str:
    """Program and version, as recorded in the audit log of an API server."""
    return f"{FIELD_MANAGER}/{version()}"


@cache
def older_generation(name: str) -> object:
    """The `rules`, `kinds`, `informers` or `control` of the older generation, for `--enable-legacy-kinds`.

    dynamo-legacy registers them as entry points, so that this package does not depend on it.

    Raises: ConfigError: dynamo-legacy is not installed.
    """
    from importlib.metadata import entry_points

    for entry in entry_points(group="dynamo_operator.older_generation", name=name):
        registered: object = entry.load()
        return registered
    from kube_runtime.errors import ConfigError

    raise ConfigError("--enable-legacy-kinds", "the package dynamo-legacy is not installed")
