"""Who else on this machine reaches a control plane: nobody. What it can do, all other tests need."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane

pytestmark = pytest.mark.cluster

LISTENS = "0A"


def test_nothing_listens_beyond_this_machine(control_plane: ControlPlane) -> None:
    pids = control_plane.instance.status().pids
    listening = {
        f"{name} {address}"
        for name, pid in pids.items()
        if pid is not None
        for address in listening_addresses(pid)
    }
    assert {f"{name} 127.0.0.1" for name in ("etcd", "kube-apiserver")} == listening


def listening_addresses(pid: int) -> Iterator[str]:
    """The addresses that a process listens on; those of version 6 as the kernel writes them."""
    links = [link.readlink().name for link in Path(f"/proc/{pid}/fd").iterdir() if link.is_symlink()]
    own = {found[1] for link in links if (found := re.fullmatch(r"socket:\[(\d+)\]", link))}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENS and fields[9] in own:
                address = fields[1].partition(":")[0]
                octets = bytes.fromhex(address)[::-1]
                yield ".".join(map(str, octets)) if table == "tcp" else address


def test_every_file_is_closed_to_other_users(control_plane: ControlPlane) -> None:
    folder = control_plane.instance.pki.parent
    assert 0o700 == folder.stat().st_mode & 0o777
    private = [*folder.glob("pki/*"), *folder.glob("kubeconfigs/*")]
    assert {0o600} == {path.stat().st_mode & 0o777 for path in private}
