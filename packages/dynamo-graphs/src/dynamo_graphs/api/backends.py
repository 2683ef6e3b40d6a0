"""The inference frameworks that the operator knows: one line each.

From a line follow the values of `backendFramework`, how a worker's command is read, and, by its name,
the module of `render/backends` that starts the framework.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BackendName:
    """Properties of a framework that code outside of rendering needs.

    `cache_path` is where a compilation cache is mounted when the user names no path; empty means that
    the user must. `needs_ssh_keys` is whether pods of one group start processes in each other.
    """

    name: str
    cache_path: str = ""
    needs_ssh_keys: bool = False


BACKENDS = (
    BackendName("sglang"),
    BackendName("vllm", cache_path="/root/.cache/vllm"),
    BackendName("trtllm", needs_ssh_keys=True),
)
"""Names in the order in which messages list them."""

NOOP = "noop"
"""Name for "no framework"."""

NAMES = tuple(backend.name for backend in BACKENDS)
