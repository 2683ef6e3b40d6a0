"""The control plane and operator of `tests/cluster`, for the other folders that need them."""

from cluster.conftest import (
    control_plane,
    first_crds,
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
    "control_plane",
    "first_crds",
    "kinds",
    "kubectl",
    "namespace",
    "operated",
    "operator",
    "operator_flags",
    "shared_operator",
    "world",
]
