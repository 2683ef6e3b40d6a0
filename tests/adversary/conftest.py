"""The control plane and operators of `tests/cluster`, for attacks by a tenant or an outsider."""

from cluster.admission.conftest import account, asker, install
from cluster.conftest import (
    control_plane,
    kinds,
    kubectl,
    namespace,
    operated,
    operator,
    operator_flags,
    shared_operator,
    world,
)

__all__ = [
    "account",
    "asker",
    "control_plane",
    "install",
    "kinds",
    "kubectl",
    "namespace",
    "operated",
    "operator",
    "operator_flags",
    "shared_operator",
    "world",
]
