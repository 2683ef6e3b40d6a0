"""The control plane and operator of `tests/cluster`, for notebooks."""

from cluster.conftest import (
    control_plane,
    kinds,
    namespace,
    operated,
    operator,
    operator_flags,
    shared_operator,
)

__all__ = ["control_plane", "kinds", "namespace", "operated", "operator", "operator_flags", "shared_operator"]
