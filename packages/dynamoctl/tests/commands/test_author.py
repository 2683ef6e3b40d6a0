"""Files that `lint` skips."""

from pathlib import Path

import pytest

from dynamoctl.main import app
from kube_runtime.commandline import execute


def test_a_kind_that_is_no_text_is_none_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("apiVersion: 5\nkind: {}\n", encoding="utf-8")
    assert 0 == execute(app(), ["lint", str(file)])
    assert "0 objects in 1 file: 0 errors, 0 warnings\n" == capsys.readouterr().err
