"""Where files are, which ports are free, and locks between processes.

Both follow the XDG base directory specification, by which a relative path counts as unset.
"""

import fcntl
import os
import secrets
import socket
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError


@contextmanager
def held(path: Path, progress: ProgressReporter, awaited: str) -> Iterator[None]:
    """Hold the lock file `path`. Reports that it waits for `awaited` if another process holds it.

    The file is never removed, because waiters would wait for the removed file while others lock a new one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # not inherited by children
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.step(f"waiting for {awaited}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


LOOPBACK = "127.0.0.1"
_LOWEST = 20_000
_ATTEMPTS = 1_000
_OUTGOING = Path("/proc/sys/net/ipv4/ip_local_port_range")


# The kernel takes ports for port 0 from the range of outgoing connections, so the next client on
# this machine may get the same one. Ports below that range are used only by processes that ask for
# them.
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


def cache_folder() -> Path:
    """The folder of everything that can be built or downloaded again."""
    return _base("XDG_CACHE_HOME", ".cache") / "dynamo-operator" / "controlplane"


def state_folder() -> Path:
    """The folder with one subfolder per instance."""
    return _base("XDG_STATE_HOME", ".local/state") / "dynamo-operator" / "controlplane"


def _base(variable: str, default: str) -> Path:
    configured = Path(os.environ.get(variable, ""))
    return configured if configured.is_absolute() else Path.home() / default


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of an instance, fixed when it is created."""

    server_port: int
    etcd_port: int
    etcd_peer_port: int
    nodes: int

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{LOOPBACK}:{self.server_port}"

    @property
    def ports(self) -> frozenset[int]:
        """All ports of the instance."""
        return frozenset((self.server_port, self.etcd_port, self.etcd_peer_port))


class Layout:
    """The paths below the folder of one instance.

    `plan` has the settings, and is written last at creation: without it the folder is a leftover. `records`
    has a file for each running process, `scratch` what may be deleted at any time, and `audit_log` every
    request to the API server, one JSON object per line.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan = folder / "instance.json"
        self.pki, self.kubeconfigs = folder / "pki", folder / "kubeconfigs"
        self.records, self.logs = folder / "run", folder / "logs"
        self.data, self.scratch = folder / "etcd", folder / "scratch"
        self.audit_log = self.logs / "audit.log"

    def create(self) -> None:
        """Create the folders, for this user only."""
        below = (self.pki, self.kubeconfigs, self.records, self.logs, self.data, self.scratch)
        for folder in (self.folder, *below):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
