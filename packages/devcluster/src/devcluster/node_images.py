"""The images of a node's own pods, each one static program: no base, no shell, nothing to keep up to date."""

import platform
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from devcluster.folders import cache_folder
from devcluster.locks import held
from devcluster.oci import Settings, TarEntry, write_image, write_layer
from devcluster.progress import SILENT

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_IMAGES = {"localhost/pause:1": "pause", "localhost/coredns:1": "coredns"}


def architecture() -> str:
    """This machine, as images call it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def node_images(programs: Mapping[str, Path]) -> dict[str, Path]:
    """Name → image file, for the pods that a node has of its own."""
    return {
        name: program_image(name, programs[program], Settings(entrypoint=[f"/{program}"]))
        for name, program in _IMAGES.items()
    }


def program_image(name: str, program: Path, settings: Settings) -> Path:
    """The file of an image that has this one static program, as `/<its name>`.

    It is named after the program's folder, whose name is the digest of what it was built from.
    """
    folder = cache_folder() / "images"
    file = folder / f"{program.name}-{program.parents[1].name}.tar"
    with held(folder / f"{program.name}.lock", SILENT, f"the image of {program.name}"):
        if not file.exists():
            part = file.with_suffix(".layer")
            only = write_layer(part, [TarEntry(PurePosixPath("/", program.name), program)])
            write_image(file, name, [only], settings, architecture=architecture())
            part.unlink()
    return file
