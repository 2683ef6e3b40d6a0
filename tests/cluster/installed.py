"""Kinds of other projects on the control plane, for as long as some tests need them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from cluster.conftest import ControlPlane
from kube_runtime.kind import Kind


@contextmanager
def installed(
    control_plane: ControlPlane, names: Sequence[str], kinds: Sequence[Kind]
) -> Iterator[None]:
    """Install them by name; afterwards take away these kinds, for other tests are without them."""
    control_plane.install_crds(names)
    try:
        yield
    finally:
        control_plane.kubectl("delete", "crd", "--timeout=90s", *map(str, kinds))
