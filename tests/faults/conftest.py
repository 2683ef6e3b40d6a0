"""The same control plane and world as in `tests/cluster`."""

from cluster.conftest import control_plane, kinds, namespace, world

__all__ = ["control_plane", "kinds", "namespace", "world"]
