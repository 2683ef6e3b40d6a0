"""Expected errors end a program with one line each and a fixed code; bugs keep their traceback."""

import pytest

from kube_runtime.commandline import ExitCode, exit_on_error
from kube_runtime.errors import ConfigError, Forbidden, Unreachable

A, B, BUG = ConfigError("a", "1"), ConfigError("b", "2"), KeyError("bug")
REFUSED, AWAY = Forbidden(403, "Forbidden", "not allowed"), Unreachable("https://127.0.0.1:1: refused")


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (ConfigError("kubeconfig", "no such\n  context"), 1, ["error: kubeconfig: no such context"]),
        (REFUSED, 1, ["error: not allowed"]),
        (AWAY, ExitCode.UNREACHABLE, ["error: https://127.0.0.1:1: refused"]),
        (ExceptionGroup("", [Unreachable("b"), REFUSED]), 1, ["error: b", "error: not allowed"]),
        (KeyboardInterrupt(), 130, []),
        (ExceptionGroup("", [A, ExceptionGroup("", [B, A])]), 1, ["error: a: 1", "error: b: 2"]),
        # What a cluster says does not rule the terminal.
        (
            ConfigError("quota", "\x1b[2J\x9b31mno\u202e \x07gpus"),
            1,
            ["error: quota: \ufffd[2J\ufffd31mno\ufffd \ufffdgpus"],
        ),
    ],
    ids=["problem", "refusal", "away", "away and refused", "interrupted", "group", "control characters"],
)
def test_an_expected_error_is_its_lines_and_a_code(
    error: BaseException, code: int, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught, exit_on_error():
        raise error
    assert (code, lines) == (caught.value.code, capsys.readouterr().err.splitlines())


@pytest.mark.parametrize("error", [BUG, BrokenPipeError(), ExceptionGroup("both", [A, BUG])], ids=repr)
def test_a_bug_keeps_its_traceback(error: Exception) -> None:
    """A broken pipe that is not stdout is one."""
    with pytest.raises(type(error)), exit_on_error():
        raise error
