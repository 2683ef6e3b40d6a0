"""How a message names a value: by its path in the configuration or in a request, or as a flag or argument."""

import re
from collections.abc import Mapping

SPELLINGS: Mapping[str, tuple[str, str]] = {
    "deployment.model": ("--model", "model"),
    "deployment.modelCache": ("--model-config", "model_config"),
    "engine.backend": ("--backend", "backend"),
    "hardware.gpuType": ("--gpu", "gpu"),
    "hardware.numGpusPerNode": ("--gpus-per-node", "gpus_per_node"),
    "hardware.maxNumGpusPerEngine": ("--max-nodes", "max_nodes"),  # a whole node is allowed already
    "sla.ttft": ("--ttft", "first_token_ms"),
    "sla.itl": ("--itl", "next_token_ms"),
    "sla.isl": ("--isl", "input_tokens"),
    "sla.osl": ("--osl", "output_tokens"),
    "analytic.engine": ("--engine", "engine"),
    "analytic.margin": ("--margin", "margin"),
    "analytic.maxGpus": ("--max-gpus", "max_gpus"),
    "analytic.maxNodesPerEngine": ("--max-nodes", "max_nodes"),
    "analytic.mode": ("--mode", "mode"),
    "analytic.requestsPerSecond": ("--requests-per-second", "requests_per_second"),
    ", or set analytic.parametersBillions": ("", ""),  # only a request has it
}
"""Path in the configuration → flag of `dynamoctl profile`, argument of `study`. Messages have the paths."""

_IN_REQUESTS: Mapping[str, str] = {
    "analytic.maxGpus": "spec.hardware.totalGpus",
    "analytic.requestsPerSecond": "spec.workload.requestRate",
    "deployment.model": "spec.model",
    "deployment.modelCache": "spec.modelCache",
    "engine.backend": "spec.backend",
    "hardware.gpuType": "spec.hardware.gpuSku",
    "hardware.numGpusPerNode": "spec.hardware.numGpusPerNode",
    "planner": "spec.features.planner",
    "sla.isl": "spec.workload.isl",
    "sla.itl": "spec.sla.itl",
    "sla.osl": "spec.workload.osl",
    "sla.ttft": "spec.sla.ttft",
    ", or set analytic.parametersBillions": "",
}
"""Path in the configuration → path in a request in v1beta1."""


_PATHS = re.compile("|".join(rf"{re.escape(path)}(?!\w)" for path in SPELLINGS))
# In free text "planner" is a word, and a path at its beginning only.
_REQUEST_PATHS = re.compile(
    "|".join(rf"(?<![\w.]){re.escape(path)}(?!\w)" for path in _IN_REQUESTS if path != "planner")
    + r"|^planner(?=[.:])"
)


def as_flags(text: str) -> str:
    """The message with flags in place of paths."""
    return _PATHS.sub(lambda path: SPELLINGS[path[0]][0], text)


def as_request(text: str) -> str:
    """The message with paths of a request in v1beta1."""
    return _REQUEST_PATHS.sub(lambda path: _IN_REQUESTS[path[0]], text)


def as_arguments(text: str) -> str:
    """The message with arguments of `study` in place of paths."""
    return _PATHS.sub(lambda path: SPELLINGS[path[0]][1], text)
