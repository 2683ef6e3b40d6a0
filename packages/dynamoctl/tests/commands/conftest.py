"""Run command lines that are wrong."""

from collections.abc import Callable

import pytest

from dynamoctl.main import run
from scripted.connections import connect_to
from simulated.server import Server


@pytest.fixture
def usage_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Run a wrong command line; what it prints on stderr."""
    connect_to(Server(), monkeypatch)

    def of(line: str) -> str:
        with pytest.raises(SystemExit) as end:
            run(line.split(" "))
        assert 2 == end.value.code
        return capsys.readouterr().err

    return of
