"""Expected errors end a program with one line each and a fixed code; bugs keep their traceback."""

import pytest

from kube_runtime.commandline import ExitCode, exit_on_error
from kube_runtime.errors import ConfigError, Forbidden, Unreachable


def ending(error: BaseException, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    with pytest.raises(SystemExit) as caught, exit_on_error():
        raise error
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err.splitlines()


def test_a_problem_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError("kubeconfig", "no such\n  context")
    assert (1, ["error: kubeconfig: no such context"]) == ending(error, capsys)


def test_an_error_answer_is_a_problem(capsys: pytest.CaptureFixture[str]) -> None:
    error = Forbidden(403, "Forbidden", "not allowed")
    assert (1, ["error: not allowed"]) == ending(error, capsys)


def test_an_unreachable_cluster_has_its_own_code(capsys: pytest.CaptureFixture[str]) -> None:
    error = Unreachable("https://127.0.0.1:1: refused")
    assert (ExitCode.UNREACHABLE, ["error: https://127.0.0.1:1: refused"]) == ending(error, capsys)


def test_an_unreachable_cluster_beside_a_refusal_is_a_problem(
    capsys: pytest.CaptureFixture[str],
) -> None:
    both = ExceptionGroup("both", [Unreachable("b"), Forbidden(403, "Forbidden", "a")])
    assert (ExitCode.PROBLEMS, ["error: b", "error: a"]) == ending(both, capsys)


def test_who_interrupts_reads_nothing_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert (130, []) == ending(KeyboardInterrupt(), capsys)


def test_a_group_is_one_line_per_problem(capsys: pytest.CaptureFixture[str]) -> None:
    inner = ExceptionGroup("inner", [ConfigError("b", "2"), ConfigError("a", "1")])
    group = ExceptionGroup("outer", [ConfigError("a", "1"), inner])
    assert (1, ["error: a: 1", "error: b: 2"]) == ending(group, capsys)


def test_a_bug_keeps_its_traceback() -> None:
    with pytest.raises(KeyError), exit_on_error():
        raise KeyError("bug")


def test_a_broken_pipe_that_is_not_stdout_is_a_bug() -> None:
    with pytest.raises(BrokenPipeError), exit_on_error():
        raise BrokenPipeError


def test_a_bug_among_problems_keeps_its_traceback() -> None:
    group = ExceptionGroup("both", [ConfigError("a", "1"), KeyError("bug")])
    with pytest.raises(ExceptionGroup), exit_on_error():
        raise group


def test_what_a_cluster_says_does_not_rule_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    error = ConfigError("quota", "\x1b[2J\x9b31mno\u202e \x07gpus")
    assert (1, ["error: quota: \ufffd[2J\ufffd31mno\ufffd \ufffdgpus"]) == ending(error, capsys)
