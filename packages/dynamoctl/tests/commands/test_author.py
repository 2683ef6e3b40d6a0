"""Invalid command lines of `new` and `explain`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dynamoctl.main import app
from kube_runtime.commandline import execute


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("new UP --model Qwen/Qwen3-32B", 'invalid name "UP" (expected a name, for example chat)'),
        ("new x --model Qwen/Qwen3-32B --replicas -1", '"-1" for --replicas'),
        ("explain services.nope", 'unknown field "nope" of spec.services.<name> (fields:'),
    ],
)
def test_a_usage_error_has_its_message(line: str, message: str, usage_error: Callable[[str], str]) -> None:
    assert message in usage_error(line)


def test_a_kind_that_is_no_text_is_none_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("apiVersion: 5\nkind: {}\n", encoding="utf-8")
    assert 0 == execute(app(), ["lint", str(file)])
    assert "0 objects in 1 file: 0 errors, 0 warnings\n" == capsys.readouterr().err
