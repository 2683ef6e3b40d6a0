"""The programs that make this machine a node, beside those of the control plane.

Several pinned modules and not one: together their requirements would raise each other's versions to
combinations that were never released. What Debian has in a version that fits is taken from there; see
`machine`.
"""

from collections.abc import Sequence
from pathlib import Path

from devcluster.build import CONTROL_PLANE, Pinned, build
from devcluster.progress import ProgressReporter
from devcluster.toolchain import GO_MODULE


def _pinned(name: str, title: str, package: str) -> Pinned:
    return Pinned(GO_MODULE.with_name(f"gomodule-{name}"), title, package, named={})


NODE_MODULES: Sequence[tuple[Pinned, tuple[str, ...]]] = (
    (
        _pinned("kubelet", "the kubelet", CONTROL_PLANE.package),
        ("kubelet", "kube-proxy"),
    ),
    (
        _pinned("containerd", "containerd", "github.com/containerd/containerd/v2"),
        ("containerd", "containerd-shim-runc-v2", "ctr"),
    ),
    (_pinned("pause", "the pause container", ""), ("pause",)),
    (_pinned("coredns", "CoreDNS", "github.com/coredns/coredns"), ("coredns",)),
    (
        _pinned("nats", "the NATS server", "github.com/nats-io/nats-server/v2"),
        ("nats-server",),
    ),
)
"""Modules, each with the programs that it builds."""


def build_node_programs(progress: ProgressReporter) -> dict[str, Path]:
    """All programs of the node by name, built if they are not there yet.

    Raises: ConfigError if one cannot be built.
    """
    found: dict[str, Path] = {}
    for pinned, programs in NODE_MODULES:
        folder = build(progress, pinned)
        found |= {program: folder / program for program in programs}
    return found
