"""The programs that make this machine a node, beside those of the control plane.

Several pinned modules and not one: together their requirements would raise each other's versions to
combinations that were never released. What Debian has in a version that fits is taken from there; see
`machine`.
"""

from collections.abc import Sequence
from pathlib import Path

from devcluster.build import CONTROL_PLANE, Pinned, build
from devcluster.progress import ProgressReporter

NODE_MODULES: Sequence[tuple[Pinned, tuple[str, ...]]] = (
    (
        Pinned("gomodule-kubelet", "the kubelet", CONTROL_PLANE.package),
        ("kubelet", "kube-proxy"),
    ),
    (
        Pinned("gomodule-containerd", "containerd", "github.com/containerd/containerd/v2"),
        ("containerd", "containerd-shim-runc-v2", "ctr"),
    ),
    (Pinned("gomodule-pause", "the pause container", ""), ("pause",)),
    (Pinned("gomodule-coredns", "CoreDNS", "github.com/coredns/coredns"), ("coredns",)),
    (
        Pinned("gomodule-nats", "the NATS server", "github.com/nats-io/nats-server/v2"),
        ("nats-server",),
    ),
)
"""Modules, each with the programs that it builds."""


def build_node_programs(progress: ProgressReporter) -> dict[str, Path]:
    """All programs of the node by name, built if they are not there yet.

    Raises: ConfigError if one cannot be built.
    """
    binaries: dict[str, Path] = {}
    for pinned, programs in NODE_MODULES:
        folder = build(progress, pinned)
        binaries |= {program: folder / program for program in programs}
    return binaries
