"""Where files are: built programs in the user's cache, instances in the user's state folder.

Both follow the XDG base directory specification, by which a relative path counts as unset.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from devcluster.ports import LOOPBACK


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
    is_real: bool = False
    """Whether it has one real node instead of fake ones."""

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://{LOOPBACK}:{self.server_port}"

    @property
    def ports(self) -> frozenset[int]:
        """All ports of the instance."""
        return frozenset((self.server_port, self.etcd_port, self.etcd_peer_port))


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths below the folder of one instance."""

    folder: Path

    @property
    def plan(self) -> Path:
        """The settings, written last at creation: without this file the folder is a leftover."""
        return self.folder / "instance.json"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.folder / "pki"

    @property
    def kubeconfigs(self) -> Path:
        """One file per user."""
        return self.folder / "kubeconfigs"

    @property
    def records(self) -> Path:
        """Records of running processes, one file each."""
        return self.folder / "run"

    @property
    def logs(self) -> Path:
        """The logs of the processes, and the audit log."""
        return self.folder / "logs"

    @property
    def audit_log(self) -> Path:
        """Every request to the API server, one JSON object per line."""
        return self.logs / "audit.log"

    @property
    def data(self) -> Path:
        """The files of etcd."""
        return self.folder / "etcd"

    @property
    def node(self) -> Path:
        """The files of a real node, with its /run and /var."""
        return self.folder / "node"

    @property
    def scratch(self) -> Path:
        """Files that may be deleted at any time."""
        return self.folder / "scratch"

    def create(self) -> None:
        """Create the folders, for this user only."""
        for folder in (
            self.folder,
            self.pki,
            self.kubeconfigs,
            self.records,
            self.logs,
            self.data,
            self.scratch,
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
