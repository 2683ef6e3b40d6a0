"""Ends when the leader of this pod's group takes workers, so that the worker may start.

    wait_for_leader.py HOST PORT SECONDS [ray]

It is not a part of the operator: it runs in a pod, in the image of the worker, with nothing but
Python's own library. The hard part is to say why it still waits: a name that does not resolve, a port
that is closed and a Ray that does not answer have different causes. An open port is not enough for
Ray, whose own health check is asked, too.
"""

import socket
import subprocess
import sys
import time

PAUSE_SECONDS = 2.0
REPEAT_SECONDS = 30.0
CONNECT_SECONDS = 5.0
# Source: `ray health-check` of Ray 2.60 gives up after 40 s; a live head answers within 2 s.
HEALTH_SECONDS = 60.0


def main(arguments: list[str]) -> int:
    """0 when the leader takes workers, 1 when it did not within the time."""
    host, port, seconds, *protocol = arguments
    deadline = time.monotonic() + float(seconds)
    told, told_at = "", 0.0
    while reason := obstacle(host, int(port), deadline, is_ray="ray" in protocol):
        now = time.monotonic()
        if now >= deadline:
            say(f"gave up after {seconds} s: {reason}")
            return 1
        if reason != told or now - told_at >= REPEAT_SECONDS:
            say(f"waiting for the leader: {reason}")
            told, told_at = reason, now
        time.sleep(min(PAUSE_SECONDS, deadline - now))
    say(f"the leader takes workers at {host}:{port}")
    return 0


def obstacle(host: str, port: int, deadline: float, *, is_ray: bool) -> str:
    """Why a worker should not start yet; empty if it may."""
    try:
        socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        return f"the name {host} does not resolve: {error}"
    try:
        socket.create_connection((host, port), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        return f"nothing listens at {host}:{port}: {error}"
    return unhealthy_ray(f"{host}:{port}", deadline) if is_ray else ""


def unhealthy_ray(address: str, deadline: float) -> str:
    """Why Ray's own health check fails; empty if it does not."""
    within = max(1.0, min(HEALTH_SECONDS, deadline - time.monotonic()))
    command = ["ray", "health-check", "--address", address]
    try:
        answer = subprocess.run(  # noqa: S603  # no shell reads it
            command, capture_output=True, text=True, timeout=within, check=False
        )
    except subprocess.TimeoutExpired:
        return f"Ray at {address} accepts connections but does not answer"
    except OSError as error:
        return f"Ray cannot be asked: {error}"
    if answer.returncode == 0:
        return ""
    lines = (answer.stderr or answer.stdout).strip().splitlines()
    return f"Ray at {address} is not healthy: {lines[-1] if lines else answer.returncode}"


def say(text: str) -> None:
    """One line for the log of the pod, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
