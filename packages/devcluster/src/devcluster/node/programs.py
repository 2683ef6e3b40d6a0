"""The programs that make this machine a node, and the images of the node's own pods.

They come from several pinned modules, because the requirements of one module would raise each other's
versions to combinations that were never released. Debian has the others in a version that fits; see
`machine`. Each image is one static program, without a base or a shell.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

from devcluster.images.oci import Settings, TarEntry, architecture, write_image, write_layer
from devcluster.layout import cache_folder
from devcluster.locks import held
from devcluster.programs.build import CONTROL_PLANE, Pinned, build
from devcluster.progress import SILENT, ProgressReporter

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
_IMAGES = {"localhost/pause:1": "pause", "localhost/coredns:1": "coredns"}
"""Image → its program."""


def build_node_programs(progress: ProgressReporter) -> dict[str, Path]:
    """All programs of the node by name, built on first use.

    Raises: ConfigError if one cannot be built.
    """
    binaries: dict[str, Path] = {}
    for pinned, programs in NODE_MODULES:
        folder = build(progress, pinned)
        binaries |= {program: folder / program for program in programs}
    return binaries


def node_images(programs: Mapping[str, Path]) -> dict[str, Path]:
    """Name → image archive, for the node's own pods."""
    return {
        name: program_image(name, programs[program], Settings(entrypoint=[f"/{program}"]))
        for name, program in _IMAGES.items()
    }


def program_image(name: str, program: Path, settings: Settings) -> Path:
    """The archive of an image with this one static program as `/<its name>`, created on first use.

    It is named after the program's folder, whose name is a digest of the sources.
    """
    folder = cache_folder() / "images"
    file = folder / f"{program.name}-{program.parents[1].name}.tar"
    with held(folder / f"{program.name}.lock", SILENT, f"the image of {program.name}"):
        if not file.exists():
            layer_file = file.with_suffix(".layer")
            layer = write_layer(layer_file, [TarEntry(PurePosixPath("/", program.name), program)])
            write_image(file, name, [layer], settings, architecture=architecture())
            layer_file.unlink()
    return file
