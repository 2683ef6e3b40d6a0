"""The namespaces of a node, with its own network, mounts, /run and /var, and its control group.

The namespaces are files, so that they outlive every process and a later command finds them. They isolate the
node from the machine: mounts made inside do not propagate out, and /run and /var are folders of the instance.
"""

import os
import select
import signal
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from devcluster.node.machine import PATH
from devcluster.processes import ProcessError, completed

NODE_ADDRESS = "10.90.0.1"
_NODE_NETWORK = f"{NODE_ADDRESS}/24"
_OUTER = "node"
_INNER = "uplink"
_ATTEMPTS = 20
_KILL_SECONDS = 0.5
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The control group of the node's containers, by which to find what is left of them.

    Version 1 has a tree per controller and version 2 one for all; the group has the same name in each. It can
    be removed when nothing runs in it and no group is below it.
    """

    name: str
    root: Path = _CONTROL_GROUPS

    def create(self) -> None:
        """Create the group in every hierarchy, unless it exists."""
        is_unified = (self.root / "cgroup.controllers").exists()
        for place in (self.root,) if is_unified else self.root.iterdir():
            if place.is_dir():
                (place / self.name).mkdir(exist_ok=True)

    def processes(self) -> set[int]:
        """The pids in the group and in those below it."""
        pids: set[int] = set()
        for folder in self._folders():
            with suppress(FileNotFoundError, OSError):
                pids |= {int(line) for line in (folder / "cgroup.procs").read_text().split()}
        return pids - {0}

    def remove(self) -> None:
        """Remove the group and those below it, except where something runs."""
        for folder in sorted(self._folders(), key=lambda folder: len(folder.parts), reverse=True):
            with suppress(OSError):
                folder.rmdir()

    def _folders(self) -> Iterator[Path]:
        for place in (self.root / self.name, *self.root.glob(f"*/{self.name}")):
            if place.is_dir():
                yield place
                yield from (folder for folder in place.rglob("*") if folder.is_dir())


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The namespaces of one instance, in its folder, and the control group of its containers."""

    folder: Path
    groups: ControlGroup

    @property
    def exist(self) -> bool:
        """Whether they exist, at least in part."""
        return any(_is_mounted(path) for path in (*self._files, self._place))

    @property
    def entering(self) -> tuple[str, ...]:
        """The prefix of a command that runs it inside.

        Not `ip netns exec`, which mounts another /sys, where the kubelet finds no control groups.
        """
        return ("nsenter", f"--net={self.network}", f"--mount={self._mount}")

    @property
    def network(self) -> Path:
        """The file of the network namespace."""
        return self._place / "net"

    def create(self) -> None:
        """Create the namespaces, the network and the control group.

        Raises: ProcessError.
        """
        self._place.mkdir(parents=True, exist_ok=True)
        for name in ("run", "var", "var/lib", "var/log", "var/tmp"):
            (self.folder / name).mkdir(exist_ok=True)
        with suppress(FileExistsError):
            (self.folder / "var" / "run").symlink_to("/run")
        # A mount namespace can be kept only in a mount that does not propagate.
        _run("mount", "--bind", str(self._place), str(self._place))
        _run("mount", "--make-private", str(self._place))
        for file in self._files:
            file.touch()
        inside = "mount --make-rshared / && mount --bind {0}/run /run && mount --bind {0}/var /var"
        _run(
            *("unshare", f"--net={self.network}", f"--mount={self._mount}", "--propagation=slave"),
            *("/bin/sh", "-c", inside.format(self.folder)),
        )
        self._make_network()
        self.groups.create()

    def end_containers(self) -> None:
        """Kill what runs in containers. The kubelet must not run, because it would restart them."""
        _kill(self.groups.processes())

    def remove(self) -> None:
        """Kill every process inside and remove the namespaces, if they exist.

        Raises: ProcessError if a process does not end.
        """
        for _ in range(_ATTEMPTS):
            if not _kill(self.processes()):
                break
        else:
            raise ProcessError(f"processes in {self._place} do not end")
        for path in (*self._files, self._place):
            while _is_mounted(path):
                _run("umount", "--lazy", str(path))
        self.groups.remove()

    def processes(self) -> set[int]:
        """The pids of all processes inside, of their children, and of the node's containers.

        A container has its own namespaces, and after a crash no parent; its control group remains.
        """
        own = {_inode(file) for file in self._files if _is_mounted(file)}
        parents = _parents()
        pids = self.groups.processes() | {
            pid
            for pid in parents
            if own & {_inode(Path(f"/proc/{pid}/ns/{kind}")) for kind in ("net", "mnt")} - {None}
        }
        while children := {pid for pid in parents if parents[pid] in pids} - pids:
            pids |= children
        return pids

    def _make_network(self) -> None:
        """Put the node's address on one end of a veth pair; the default route ends in the other, nowhere."""
        for command in (
            ("ip", "link", "set", "lo", "up"),
            *(("ip", "link", "add", "name", _OUTER, "type", "veth", "peer", "name", _INNER),),
            ("ip", "address", "add", _NODE_NETWORK, "dev", _OUTER),
            ("ip", "link", "set", _OUTER, "up"),
            ("ip", "link", "set", _INNER, "up"),
            ("ip", "route", "add", "default", "dev", _OUTER),
            ("/bin/sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"),
        ):
            _run(*self.entering, *command)

    @property
    def _place(self) -> Path:
        return self.folder / "namespaces"

    @property
    def _mount(self) -> Path:
        return self._place / "mount"

    @property
    def _files(self) -> Sequence[Path]:
        return (self.network, self._mount)


def _parents() -> dict[int, int]:
    """The parent of each process on this machine."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):
                stat = (folder / "stat").read_text()
                parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    return parents


def _inode(path: Path) -> int | None:
    """The inode, which identifies a namespace, or None if the process is gone or not visible to us."""
    try:
        return path.stat().st_ino
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None


def _is_mounted(path: Path) -> bool:
    """Not `os.path.ismount`, which does not detect a folder that is mounted on itself."""
    escaped = str(path).replace("\\", "\\134").replace(" ", "\\040")
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    return any(escaped == line.split()[4] for line in mounts)


def _kill(pids: Iterable[int]) -> bool:
    """Kill processes; return whether any ran. A pid descriptor cannot refer to a later process."""
    descriptors = []
    for pid in pids:
        with suppress(ProcessLookupError):
            descriptors.append(os.pidfd_open(pid))
    for descriptor in descriptors:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    for descriptor in descriptors:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(_KILL_SECONDS * 1000)
        os.close(descriptor)
    return bool(descriptors)


def _run(*command: str) -> None:
    done = completed(command, {"PATH": PATH})
    if done.returncode:
        raise ProcessError(f"{' '.join(command)}: {done.stderr.strip()}")
