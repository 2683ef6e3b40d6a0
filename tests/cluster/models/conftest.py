"""An operator whose workers are a fleet of the tests."""

from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.models.launch import MODELS_PROGRAM, workers_at
from cluster.operator_process import OFF, OperatorProcess
from simulated.lora_fleet import Fleet

FLAGS = (*OFF, "--model-call-timeout=3s")


@pytest.fixture(scope="module")
def shared_fleet() -> Iterator[Fleet]:
    """The workers of all pods of a module; addresses of pods come again."""
    with Fleet().running() as running:
        yield running


@pytest.fixture
def fleet(shared_fleet: Fleet) -> Fleet:
    """Workers that have nothing loaded, and are well."""
    shared_fleet.workers.clear()
    return shared_fleet


@pytest.fixture(scope="module")
def shared_operator(
    kinds: ControlPlane, shared_fleet: Fleet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One operator for all tests of a module; it calls the fleet, whatever the address."""
    log = tmp_path_factory.mktemp("operator") / "operator.log"
    started = OperatorProcess(
        kinds.kubeconfig, log, FLAGS, program=MODELS_PROGRAM, variables=workers_at(shared_fleet)
    )
    with started as process:
        process.ready(60)
        yield process
