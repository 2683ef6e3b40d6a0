"""One operator for the tests of scaling."""

from collections.abc import Callable, Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess


@pytest.fixture(scope="module")
def scaling_operator(
    kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a module."""
    log = tmp_path_factory.mktemp("scaling-operator") / "operator.log"
    with OperatorProcess(kinds.kubeconfig, log, OFF) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(scaling_operator: OperatorProcess) -> OperatorProcess:
    """The operator, which must still run."""
    assert scaling_operator.ended is None, scaling_operator.log.read_text()
    return scaling_operator


@pytest.fixture
def kubectl(kinds: ControlPlane, namespace: str) -> Callable[..., str]:
    """Runs kubectl in the test's namespace."""

    def run(*args: str, input: str | None = None) -> str:  # noqa: A002 - as subprocess has it
        return kinds.kubectl(*args, f"--namespace={namespace}", input=input)

    return run
