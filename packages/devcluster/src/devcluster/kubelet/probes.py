"""Probes of containers: when one passes (pure), and one question to a container."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from kube_runtime.types.meta import Object

_OK = range(200, 400)
_HEAD_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a probe counts as passed; None before the first answer that decides it."""

    passed: bool | None = None
    latest: bool | None = None
    streak: int = 0

    def after(self, answer: bool, probe: Object) -> "Verdict":
        """The verdict after one more answer: it changes after so many of the same kind in a row."""
        streak = self.streak + 1 if answer == self.latest else 1
        needed = probe.get("successThreshold", 1) if answer else probe.get("failureThreshold", 3)
        return Verdict(answer if streak >= needed else self.passed, answer, streak)


def period_seconds(probe: Object) -> float:
    """Seconds between two questions."""
    return float(probe.get("periodSeconds") or 10)


def port_of(port: int | str, ports: Sequence[Object]) -> int:
    """The number of a port, which may be the name of one of the container's. Raises: ValueError."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    for declared in ports:
        if declared.get("name") == port:
            return int(declared["containerPort"])
    raise ValueError(f'the container has no port "{port}"')


async def failure(
    probe: Object, *, host: str, ports: Sequence[Object], environment: Mapping[str, str]
) -> str:
    """Ask once. Why the probe failed; "" if it succeeded."""
    limit = float(probe.get("timeoutSeconds") or 1)
    try:
        async with asyncio.timeout(limit):
            if request := probe.get("httpGet"):
                return await _http(request, host, ports)
            if command := (probe.get("exec") or {}).get("command"):
                return await _command(command, environment)
            if target := probe.get("tcpSocket") or probe.get("grpc"):
                _, writer = await asyncio.open_connection(host, port_of(target["port"], ports))
                writer.close()
            return ""
    except TimeoutError:
        return f"no answer within {limit:g} s"
    except OSError as error:
        return os.strerror(error.errno).lower() if error.errno else str(error)
    except (ValueError, EOFError) as error:
        return str(error)


async def _http(request: Object, host: str, ports: Sequence[Object]) -> str:
    port, path = port_of(request["port"], ports), str(request.get("path") or "/")
    if any(ord(letter) <= ord(" ") for letter in path):
        return f'invalid path "{path}"'
    reader, writer = await asyncio.open_connection(host, port, limit=_HEAD_BYTES)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kube-probe/1.36\r\n".encode())
        writer.write(b"Connection: close\r\n\r\n")
        status = (await reader.readline()).split(b" ", 2)
    finally:
        writer.close()
    code = int(status[1]) if len(status) > 1 else 0
    return "" if code in _OK else f"HTTP probe failed with statuscode: {code}"


async def _command(command: Sequence[str], environment: Mapping[str, str]) -> str:
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        code = await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    return f"command exited with {code}" if code else ""
