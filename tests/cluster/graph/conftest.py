"""One operator for the tests of graphs that need no kinds of other projects."""

from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess


@pytest.fixture(scope="module")
def shared_operator(
    kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a module that do not stop it; the next one may want to be alone."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    with OperatorProcess(
        kinds.kubeconfig, log, (*OFF, "--planner-cluster-role-name=view")
    ) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(shared_operator: OperatorProcess) -> OperatorProcess:
    """The shared operator, which must still run, and have logged nothing that is a bug."""
    assert shared_operator.ended is None, shared_operator.log.read_text()
    return shared_operator
