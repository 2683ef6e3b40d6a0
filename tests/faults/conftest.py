"""The same control plane and world as in `tests/cluster`, and a stage for operators that die.

A module has its scenarios played by asking for `survives`. It may say with `operated` and `compared` where
that is, and what else must be the same in the end.
"""

import ssl
from collections.abc import Callable, Iterator, Mapping

import pytest

from cluster.conftest import ControlPlane
from faults.playing import Run, all_survived, asked, played
from faults.scenarios import Scenario
from faults.stage import Stage, stage_on
from kube_runtime.types.meta import Kind

SURVIVED = pytest.StashKey[list[tuple[str, int, int]]]()
MEASURED = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def tls(kinds: ControlPlane) -> ssl.SSLContext:
    return kinds.tls


@pytest.fixture(scope="module")
def compared() -> tuple[Kind, ...]:
    """The kinds whose objects must be the same in the end, besides those of graphs."""
    return ()


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    return ()


@pytest.fixture(scope="module")
def operator_variables() -> Mapping[str, str]:
    return {}


@pytest.fixture(scope="module")
def stage(
    operated: ControlPlane,
    compared: tuple[Kind, ...],
    operator_flags: tuple[str, ...],
    operator_variables: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    with stage_on(operated, folder, *compared, flags=operator_flags, variables=operator_variables) as found:
        yield found


@pytest.fixture(scope="module")
def runs(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Mapping[Scenario, Run]]:
    with played(stage, asked(request)) as found:
        yield found


@pytest.fixture
def survived(request: pytest.FixtureRequest) -> list[tuple[str, int, int]]:
    """Where to note a scenario, how many points there are, and how many an operator died at."""
    return request.config.stash.setdefault(SURVIVED, [])


@pytest.fixture
def survives(
    runs: Mapping[Scenario, Run], survived: list[tuple[str, int, int]]
) -> Callable[[Scenario], None]:
    """Fails unless the scenario comes to the same end at every point that an operator dies at."""
    return lambda scenario: survived.append(all_survived(scenario, runs[scenario]))


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> list[str]:
    """Where to note a line of numbers for the end of the session."""
    return request.config.stash.setdefault(MEASURED, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if lines := config.stash.get(MEASURED, []):
        terminalreporter.section("measured")
        for line in lines:
            terminalreporter.write_line(line)
    if noted := config.stash.get(SURVIVED, []):
        terminalreporter.section("crashes survived")
        for name, points, died in noted:
            terminalreporter.write_line(f"{name}: {died} of {points}")
        total, died = sum(each[1] for each in noted), sum(each[2] for each in noted)
        terminalreporter.write_line(f"{len(noted)} scenarios x {total} points: {died} survived")
