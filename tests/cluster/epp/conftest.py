"""InferencePools and VirtualServices on the control plane, and an operator that has a gateway."""

from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.installed import installed
from dynamo_operator.shared.cluster import InferencePool, VirtualService


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the kinds of the Gateway API inference extension and of Istio."""
    with installed(kinds, ("inferencepool", "istio"), (InferencePool.KIND, VirtualService.KIND)):
        yield kinds


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """It may run pickers, and it has a gateway."""
    return ("--epp-cluster-role-name=view", "--istio-virtual-service-gateway=istio-system/public")
