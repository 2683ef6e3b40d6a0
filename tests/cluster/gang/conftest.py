"""Grove and the KAI scheduler's queues on the control plane, without anybody who acts on them."""

from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.operator_process import OFF, OperatorProcess
from dynamo_operator.kube.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_operator.kube.types.kai import Queue

_KINDS = tuple(each.KIND for each in (PodCliqueSet, PodClique, PodCliqueScalingGroup, Queue))


@pytest.fixture(scope="module")
def grove(kinds: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane with the kinds of Grove and KAI, and the queue `dynamo`."""
    with installed(kinds, ("grove", "kai"), _KINDS):
        queue = '{"apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": "dynamo"}}'
        kinds.kubectl("create", "--filename=-", input=queue)
        yield kinds


@pytest.fixture(scope="module")
def gang_operator(
    grove: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of gangs."""
    log = tmp_path_factory.mktemp("gang-operator") / "operator.log"
    with OperatorProcess(grove.kubeconfig, log, OFF) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(gang_operator: OperatorProcess) -> OperatorProcess:
    """The operator, which must still run."""
    assert gang_operator.ended is None, gang_operator.log.read_text()
    return gang_operator
