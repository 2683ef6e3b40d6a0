"""Names of files, containers and variables that a profiler and the operator share.

The names of files are also keys of the output ConfigMap.
"""

RESULTS_FILE = "config_with_planner.yaml"
MOCKED_RESULTS_FILE = "mocker_config_with_planner.yaml"
STATUS_FILE = "profiler_status.yaml"

PROFILER, COPIER = "profiler", "output-copier"
"""Containers of a profiling Job."""

OWN_VARIABLES = ("DGDR_NAME", "DGDR_NAMESPACE", "DGDR_UID")
"""Variables that identify the request to the profiler; a user cannot set them."""

TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  a path
"""The usual path of a ServiceAccount's token, where admission mounts it and clients look for it."""


def is_variable(value: object) -> bool:
    """Whether a value has the form of an environment variable."""
    return isinstance(value, dict) and isinstance(value.get("name"), str) and bool(value["name"])
