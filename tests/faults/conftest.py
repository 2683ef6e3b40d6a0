"""The same control plane and world as in `tests/cluster`, and a stage for operators that die."""

import ssl
from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane, control_plane, kinds, namespace, world
from faults.stage import Stage, stage_on, tls_of

__all__ = ["control_plane", "kinds", "namespace", "world"]

SURVIVED = pytest.StashKey[list[tuple[str, int, int]]]()
MEASURED = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def tls(kinds: ControlPlane) -> ssl.SSLContext:
    """What the administrator connects with."""
    return tls_of(kinds)


@pytest.fixture(scope="module")
def stage(
    kinds: ControlPlane, tls: ssl.SSLContext, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """A stage on the session's control plane."""
    with stage_on(kinds, tls, tmp_path_factory.mktemp("stage")) as found:
        yield found


@pytest.fixture
def survived(request: pytest.FixtureRequest) -> list[tuple[str, int, int]]:
    """Where to note a scenario, how many points there are, and how many an operator died at."""
    return request.config.stash.setdefault(SURVIVED, [])


@pytest.fixture
def measured(request: pytest.FixtureRequest) -> list[str]:
    """Where to note a line of numbers for the end of the session."""
    return request.config.stash.setdefault(MEASURED, [])


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say what was survived."""
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
