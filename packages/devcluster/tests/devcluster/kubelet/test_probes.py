"""Probes: thresholds, named ports, and answers of a real server."""

import asyncio
import sys

import pytest

from devcluster.kubelet import probes
from kube_runtime.types.meta import Object

PORTS = [{"name": "http", "containerPort": 8000}]


def verdicts(answers: str, probe: Object) -> list[bool | None]:
    verdict, seen = probes.Verdict(), list[bool | None]()
    for answer in answers:
        verdict = verdict.after(answer == "+", probe)
        seen.append(verdict.passed)
    return seen


def test_three_failures_in_a_row_decide_and_one_success() -> None:
    assert verdicts("--+--+---", {}) == [None, None, True, True, True, True, True, True, False]


def test_thresholds_are_those_of_the_probe() -> None:
    assert verdicts("++-", {"successThreshold": 2, "failureThreshold": 1}) == [None, True, False]


def test_a_port_may_have_a_name() -> None:
    assert [probes.port_of(port, PORTS) for port in ("http", "9090", 9090)] == [8000, 9090, 9090]
    with pytest.raises(ValueError, match='no port "grpc"'):
        probes.port_of("grpc", PORTS)


@pytest.mark.parametrize(
    ("status", "failure"),
    [("200 OK", ""), ("302 Found", ""), ("503 No", "HTTP probe failed with statuscode: 503")],
)
def test_a_status_below_400_is_a_success(status: str, failure: str) -> None:
    async def ask() -> str:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 {status}\r\n\r\n".encode())
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            probe = {"httpGet": {"path": "/live", "port": port}}
            return await probes.failure(probe, host="127.0.0.1", ports=(), environment={})

    assert asyncio.run(ask()) == failure


@pytest.mark.parametrize(
    ("code", "failure"),
    [
        ("", ""),
        ("import sys; sys.exit(3)", "command exited with 3"),
        ("import time; time.sleep(60)", "no answer within 2 s"),
    ],
)
def test_a_command_fails_by_its_exit_code_and_by_time(code: str, failure: str) -> None:
    probe = {"exec": {"command": [sys.executable, "-I", "-S", "-c", code]}, "timeoutSeconds": 2}
    assert asyncio.run(probes.failure(probe, host="", ports=(), environment={})) == failure


def test_a_port_where_nothing_listens_is_a_failure() -> None:
    probe = {"tcpSocket": {"port": 9}}
    failure = asyncio.run(probes.failure(probe, host="127.99.99.99", ports=(), environment={}))
    assert failure == "connection refused"
