"""The supported inference frameworks, one line each.

The line decides the values of `backendFramework`, the detection from a worker's command, and, by its
name, the module of `render/backends` that starts the framework.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackendName:
    """Properties of a framework that code outside of rendering needs.

    `cache_path` is the default mount path of a compilation cache; if empty, the user must set one.
    `needs_ssh_keys` is true if the pods of a group start processes in each other over SSH.
    """

    name: str
    cache_path: str = ""
    needs_ssh_keys: bool = False


BACKENDS = (
    BackendName("sglang"),
    BackendName("vllm", cache_path="/root/.cache/vllm"),
    BackendName("trtllm", needs_ssh_keys=True),
)
"""In the order in which messages list them."""

NOOP = "noop"
"""The name of a component without a framework."""

NAMES = tuple(backend.name for backend in BACKENDS)
