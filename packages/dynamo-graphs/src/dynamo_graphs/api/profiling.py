"""What a profiler and the operator agree on: names of files and of variables.

The names of files are also keys of the ConfigMap with the output.
"""

RESULTS_FILE = "config_with_planner.yaml"
MOCKED_RESULTS_FILE = "mocker_config_with_planner.yaml"
STATUS_FILE = "profiler_status.yaml"

PROFILER, COPIER = "profiler", "output-copier"
"""Containers of a profiling Job."""

OWN_VARIABLES = ("DGDR_NAME", "DGDR_NAMESPACE", "DGDR_UID")
"""Variables that identify the request to the profiler; a user cannot set them."""

TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  a path
"""Where every client looks for a ServiceAccount's token, and where admission mounts one."""
