"""Logs of several pods: whole lines after the name of their pod, bounded, and nothing twice after a cut."""

import msgspec
import pytest

from dynamo_graphs.logs import LINE_BYTES, PodLog, bounded_lines, log_line, log_query
from kube_runtime.errors import Invalid
from kube_runtime.types.kinds import Pod
from scripted.transport import Script, answer, chunks

WAITING = b'{"kind":"Status","code":400,"message":"container \\"main\\" is waiting to start"}'


def a_log(kubelet: Script, printed: list[str]) -> PodLog:
    """The log of a pod; the texts of its lines are added to `printed`."""
    pod = msgspec.convert({"metadata": {"namespace": "prod", "name": "chat-0"}}, Pod)
    return PodLog(kubelet, pod, log_query("main", 100), lambda _, line: printed.append(line.text))


async def test_what_was_printed_before_a_cut_is_not_printed_again() -> None:
    first = b"2026-11-23T03:00:00Z one\n2026-11-23T03:00:01.5Z two\n"
    kubelet = Script([answer(200, first), answer(200, first + b"2026-11-23T03:00:02Z three\n")])
    printed: list[str] = []
    log = a_log(kubelet, printed)
    await log.print()
    await log.print()
    assert ["one", "two", "three"] == printed
    assert "/api/v1/namespaces/prod/pods/chat-0/log" == kubelet.requests[0].path


async def test_a_container_that_has_not_started() -> None:
    with pytest.raises(Invalid, match="waiting to start"):
        await a_log(Script([answer(400, WAITING)]), []).print()


async def test_an_answer_without_a_log_is_explained() -> None:
    with pytest.raises(Invalid, match="has not started, so it has no log"):
        await a_log(Script([answer(204, b"")]), []).print()


def test_the_query_of_all_options() -> None:
    query = log_query("copier", -1, since_seconds=7200, previous=True)
    assert {"container": "copier", "timestamps": "true", "sinceSeconds": "7200", "previous": "true"} == query


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ([b"on", b"e\ntwo\nth", b"ree"], [b"one", b"two", b"three"]),
        ([*[b"x" * LINE_BYTES] * 3, b"\ny"], [b"x" * LINE_BYTES, b"y"]),
    ],
    ids=["joined", "limit"],
)
async def test_lines_are_joined_over_chunks_up_to_a_limit(parts: list[bytes], lines: list[bytes]) -> None:
    assert lines == [each async for each in bounded_lines(chunks(*parts))]


def test_a_line_does_not_rule_the_terminal_and_one_without_a_time_is_kept_whole() -> None:
    line = log_line(b"2026-11-23T03:00:00.1Z \x1b[31mred\x1b[0m \x1b[2Jgone\x07\r")
    assert ("2026-11-23T03:00:00.1Z", "red \ufffd[2Jgone\ufffd") == (line.time, line.text)
    assert "no time here" == log_line(b"no time here").text


def test_times_are_ordered_though_zeros_are_left_out() -> None:
    texts = (b"2026-11-23T03:00:00.1Z a", b"2026-11-23T03:00:00.12Z b", b"2026-11-23T03:00:01Z c")
    orders = [log_line(each).order for each in texts]
    assert sorted(orders) == orders
