"""Check that this machine can be a node, before anything is built; and enter its namespaces.

A kernel has no list of its features, because a module may be built in, loaded or loadable. So the checks try
what a node needs, in temporary namespaces.
"""

import os
import select
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from devcluster.processes import ProcessError, completed, last_line
from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError

CNI_PROGRAMS = Path("/usr/lib/cni")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PACKAGES: Mapping[str, Sequence[str]] = {
    "runc": ("runc",),
    "containernetworking-plugins": tuple(
        str(CNI_PROGRAMS / name) for name in ("ptp", "host-local", "loopback", "portmap")
    ),
    "conntrack": ("conntrack",),
    "nftables": ("nft",),
    "iproute2": ("ip",),
    "mount": ("mount", "umount"),
    "util-linux": ("unshare", "nsenter"),
    "mmdebstrap": ("mmdebstrap",),
    "buildah": ("buildah",),
}
"""Debian package → the programs that a node needs of it, by name or path."""

_HIERARCHIES = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpu", "memory", "pids")
_KERNEL_CHECKS = {
    "network and mount namespaces": "true",
    "virtual network pairs (veth)": "ip link add name trial-a type veth peer name trial-b",
    "nftables with address translation": (
        "nft add table ip trial && "
        "nft add chain ip trial nat '{ type nat hook postrouting priority srcnat; }' && "
        "nft add rule ip trial nat ct state new masquerade"
    ),
    "the file system overlay": (
        "mount -t tmpfs none /mnt && cd /mnt && mkdir low up work all && "
        "mount -t overlay -o lowerdir=low,upperdir=up,workdir=work none all"
    ),
}


def require_node_support(progress: ProgressReporter) -> None:
    """Check that this machine can be a node, and install missing Debian packages, which the checks use.

    Raises: ConfigError about "a real node" with what is missing, or about a package that is not available.
    """
    if sys.platform != "linux":
        raise _refused("needs Linux: containers share its kernel")
    if os.geteuid() != 0:
        raise _refused("needs root: a node makes namespaces, mounts and control groups")
    require_control_groups()
    _require_packages(progress)
    for feature, command in _KERNEL_CHECKS.items():
        if cause := _failure(command):
            raise _refused(f"this kernel lacks {feature}: {cause}")


def _refused(reason: str) -> ConfigError:
    return ConfigError("a real node", reason)


def require_control_groups(hierarchies: Path = _HIERARCHIES) -> None:
    """Check that control groups, version 1 or 2, are available for containers.

    Raises: ConfigError with what is missing.
    """
    unified = hierarchies / "cgroup.controllers"
    if unified.exists():
        controllers = dict.fromkeys(unified.read_text().split(), hierarchies)
    else:
        controllers = {tree.name: tree for tree in (hierarchies.iterdir() if hierarchies.exists() else ())}
    if missing := [name for name in _CONTROLLERS if name not in controllers]:
        raise _refused(f"no control groups for {', '.join(missing)} below {hierarchies}")
    if read_only := [name for name in _CONTROLLERS if not os.access(controllers[name], os.W_OK)]:
        raise _refused(f"control groups for {', '.join(read_only)} below {hierarchies} are read-only")


def missing_packages() -> list[str]:
    return [
        package
        for package, programs in _PACKAGES.items()
        if not all(shutil.which(program, path=PATH) for program in programs)
    ]


def _require_packages(progress: ProgressReporter) -> None:
    missing = missing_packages()
    if not missing:
        return
    names = " ".join(missing)
    if shutil.which("apt-get", path=PATH) is None:
        raise _refused(f"missing programs; install what Debian calls: {names}")
    progress.step(f"installing Debian packages: {names}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ("apt-get", "update"),
        ("apt-get", "install", "--yes", "--no-install-recommends", *missing),
    ):
        done = completed(command, environment)
        if done.returncode:
            # Not `_refused`: the machine could be a node, and tests must not be skipped because of a mirror.
            raise ConfigError(" ".join(command[:2]), last_line(done.stderr, "no reason given"))


def _failure(command: str) -> str:
    """Run a command in temporary namespaces; return the last line of its errors, or "" if it succeeded."""
    done = completed(["unshare", "--net", "--mount", "/bin/sh", "-c", command], {"PATH": PATH})
    return last_line(done.stderr, "no reason given") if done.returncode else ""


NODE_ADDRESS = "10.90.0.1"
_NODE_NETWORK = f"{NODE_ADDRESS}/24"
_OUTER = "node"
_INNER = "uplink"
_ATTEMPTS = 20
_KILL_SECONDS = 0.5
_CONTROL_GROUPS = Path("/sys/fs/cgroup")


# The namespaces are files, so that they outlive every process and a later command finds them. They
# isolate the node from the machine: mounts made inside do not propagate out, and /run and /var are
# folders of the instance.
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
