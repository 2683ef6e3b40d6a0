"""Free ports that no other process is likely to take before we do.

The kernel takes ports for port 0 from the range of outgoing connections, so the next client on this machine
may get the same one. Ports below that range are used only by processes that ask for them.
"""

import secrets
import socket
from collections.abc import Container
from pathlib import Path

from kube_runtime.errors import ConfigError

LOOPBACK = "127.0.0.1"
_LOWEST = 20_000
_ATTEMPTS = 1_000
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_ports(count: int, *, reserved: Container[int] = ()) -> tuple[int, ...]:
    """Ports of the loopback address that are free now and not `reserved`."""
    ports: set[int] = set()
    highest = max(int(_OUTGOING.read_text().split()[0]), _LOWEST + _ATTEMPTS)
    for _ in range(_ATTEMPTS):
        if len(ports) == count:
            return tuple(ports)
        port = _LOWEST + secrets.randbelow(highest - _LOWEST)
        if port not in reserved and _is_free(port):
            ports.add(port)
    raise ConfigError(LOOPBACK, f"no {count} free ports from {_LOWEST} to {highest}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
