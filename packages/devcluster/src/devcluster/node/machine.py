"""Check that this machine can be a node, before anything is built.

A kernel has no list of its features, because a module may be built in, loaded or loadable. So the checks try
what a node needs, in temporary namespaces.
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
        controllers = {
            tree.name: tree for tree in (hierarchies.iterdir() if hierarchies.exists() else ())
        }
    if missing := [name for name in _CONTROLLERS if name not in controllers]:
        raise _refused(f"no control groups for {', '.join(missing)} below {hierarchies}")
    if read_only := [name for name in _CONTROLLERS if not os.access(controllers[name], os.W_OK)]:
        raise _refused(
            f"control groups for {', '.join(read_only)} below {hierarchies} are read-only"
        )


def missing_packages() -> list[str]:
    """The Debian packages with programs that this machine lacks."""
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
