"""One operator for the tests of requests, and somebody who plays the kubelet for profiling pods."""

from collections.abc import Callable, Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.operator_process import OFF, OperatorProcess
from cluster.requests.playing import FLAGS, Player
from cluster.world import World


@pytest.fixture(scope="module")
def request_operator(
    kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a module."""
    log = tmp_path_factory.mktemp("request-operator") / "operator.log"
    with OperatorProcess(kinds.kubeconfig, log, (*OFF, *FLAGS)) as process:
        process.ready()
        yield process


@pytest.fixture
def operator(request_operator: OperatorProcess) -> Iterator[OperatorProcess]:
    """The operator, which must still run afterwards and have met no bug of its own."""
    assert request_operator.ended is None, request_operator.log.read_text()
    yield request_operator
    bugs = [each for each in request_operator.log.read_text().splitlines() if "Traceback" in each]
    assert not bugs, bugs[0]


@pytest.fixture
def player(world: World) -> Player:
    """The kubelet of this namespace's profiling pods."""
    return Player(world)


@pytest.fixture
def kubectl(kinds: ControlPlane, namespace: str) -> Callable[..., str]:
    """Runs kubectl in the test's namespace."""

    def run(*args: str, input: str | None = None) -> str:  # noqa: A002 - as subprocess has it
        return kinds.kubectl(*args, f"--namespace={namespace}", input=input)

    return run
