"""The program's command line."""

import pytest

from dynamo_profiler.main import app
from kube_runtime.commandline import execute


def test_a_usage_error_has_an_exit_code_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        execute(app(), ["--no-such-flag"])
    assert 2 == ended.value.code
    assert 1 == len(capsys.readouterr().err.splitlines())
