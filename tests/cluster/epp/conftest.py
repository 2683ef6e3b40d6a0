"""InferencePools and VirtualServices on the control plane, and an operator that has a gateway."""

from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.operator_process import OFF, OperatorProcess
from dynamo_operator.kube.types.inference import InferencePool
from dynamo_operator.kube.types.istio import VirtualService

_FLAGS = ("--epp-cluster-role-name=view", "--istio-virtual-service-gateway=istio-system/public")


@pytest.fixture(scope="module")
def gateway(kinds: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the kinds of the Gateway API inference extension and of Istio."""
    with installed(kinds, ("inferencepool", "istio"), (InferencePool.KIND, VirtualService.KIND)):
        yield kinds


@pytest.fixture(scope="module")
def gateway_operator(
    gateway: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of pickers and gateways."""
    log = tmp_path_factory.mktemp("gateway-operator") / "operator.log"
    with OperatorProcess(gateway.kubeconfig, log, (*OFF, *_FLAGS)) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(gateway_operator: OperatorProcess) -> OperatorProcess:
    """The operator, which must still run."""
    assert gateway_operator.ended is None, gateway_operator.log.read_text()
    return gateway_operator
