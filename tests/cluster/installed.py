"""Install CRDs of other projects for the length of a block."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cluster.conftest import ControlPlane
from kube_runtime.types.meta import Kind


@contextmanager
def installed(control_plane: ControlPlane, names: Sequence[str], kinds: Sequence[Kind]) -> Iterator[None]:
    """Install CRDs by name, and delete these kinds at the end, because other tests run without them."""
    control_plane.install_crds(names)
    try:
        yield
    finally:
        control_plane.kubectl("delete", "crd", "--timeout=180s", *map(str, kinds))
