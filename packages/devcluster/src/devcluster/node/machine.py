"""Whether this machine can be a node, in one line, before anything is built.

Features of a kernel have no list to read: a module may be built in, loaded or loadable. So what is needed is
tried, in namespaces that end with the trial.
"""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from devcluster.processes import completed, last_line
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
}
"""Debian package → the programs that must be there, by name or path."""

_HIERARCHIES = Path("/sys/fs/cgroup")
_CONTROLLERS = ("cpu", "memory", "pids")
_TRIALS = {
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
    """Returns if this machine can be a node. Installs missing Debian packages: the kernel is tried with them.

    Raises: ConfigError about "a real node" with what is missing, or about a package that is not available.
    """
    if sys.platform != "linux":
        raise _refused("needs Linux: containers share its kernel")
    if os.geteuid() != 0:
        raise _refused("needs root: a node makes namespaces, mounts and control groups")
    require_control_groups()
    _require_packages(progress)
    for feature, command in _TRIALS.items():
        if words := _failure(command):
            raise _refused(f"this kernel lacks {feature}: {words}")


def _refused(reason: str) -> ConfigError:
    return ConfigError("a real node", reason)


def require_control_groups(hierarchies: Path = _HIERARCHIES) -> None:
    """Returns if containers can be put into control groups, of the first or of the second version.

    Raises: ConfigError with what is missing.
    """
    unified = hierarchies / "cgroup.controllers"
    if unified.exists():
        controllers = dict.fromkeys(unified.read_text().split(), hierarchies)
    else:
        controllers = {
            tree.name: tree for tree in (hierarchies.iterdir() if hierarchies.exists() else ())
        }
    if missing := [name for name in _CONTROLLERS if name not in controllers]:
        raise _refused(f"no control groups for {', '.join(missing)} below {hierarchies}")
    if shut := [name for name in _CONTROLLERS if not os.access(controllers[name], os.W_OK)]:
        raise _refused(f"control groups for {', '.join(shut)} below {hierarchies} are read-only")


def missing_packages() -> list[str]:
    """The Debian packages whose programs are not on this machine."""
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
            # No refusal: the machine could be a node, and a test must not be left out for a mirror's sake.
            raise ConfigError(" ".join(command[:2]), last_line(done.stderr, "no reason given"))


def _failure(command: str) -> str:
    """The end of the output of a command in its own namespaces. Empty means: it succeeded."""
    done = completed(["unshare", "--net", "--mount", "/bin/sh", "-c", command], {"PATH": PATH})
    return last_line(done.stderr, "no reason given") if done.returncode else ""
