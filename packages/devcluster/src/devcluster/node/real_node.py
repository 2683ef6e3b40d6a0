"""A real node beside the control plane of an instance: its namespaces, programs and images.

A crash may leave programs, containers, mounts or control groups behind. So the namespaces determine what
belongs to the node, no matter which process started it.
"""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from devcluster.images.oci import Settings, TarEntry, architecture, write_image, write_layer
from devcluster.layout import Layout, Plan, cache_folder, held
from devcluster.node.components import CONTAINERD_SOCKET, NODE_ARGUMENTS, write_node_settings
from devcluster.node.machine import PATH, ControlGroup, Namespaces
from devcluster.processes import Process, ProcessError, completed, first_ended
from devcluster.programs import CONTROL_PLANE, Pinned, build
from devcluster.progress import SILENT, ProgressReporter
from kube_runtime.errors import ConfigError

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


# They come from several pinned modules, because the requirements of one module would raise each
# other's versions to combinations that were never released. Debian has the others in a version that
# fits; see `machine`. Each image is one static program, without a base or a shell.
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


FORWARDER = "forwarder"
NODE_PROCESSES = (FORWARDER, *NODE_ARGUMENTS)
_FORWARD = Path(__file__).with_name("forward.py")
_HIDDEN = (Path("/run"), Path("/var"), Path("/mnt"))
_READY_SECONDS = 60
_BETWEEN_PROBES_SECONDS = 0.2


def namespaces(layout: Layout) -> Namespaces:
    """The namespaces of an instance, whether or not they exist."""
    return Namespaces(layout.node, ControlGroup(f"dynamo-operator-{layout.folder.name}"))


@dataclass(frozen=True, slots=True)
class RealNode:
    """The real node of an instance."""

    layout: Layout
    plan: Plan
    programs: Mapping[str, Path]

    @property
    def entering(self) -> tuple[str, ...]:
        """The prefix of a command that runs it on the node."""
        return namespaces(self.layout).entering

    def prepare(self) -> None:
        """Create the namespaces and start the port forwarder into them, unless they exist.

        Raises: ProcessError, ConfigError.
        """
        spaces = namespaces(self.layout)
        if any(self.layout.folder.is_relative_to(hidden) for hidden in _HIDDEN):
            raise ConfigError(str(self.layout.folder), "a real node has its own /run and /var")
        if not spaces.exist:
            spaces.groups.remove()
            spaces.create()
        forwarder = self._process(FORWARDER)
        if forwarder.pid() is None:
            arguments = (str(self.plan.server_port), spaces.network)
            forwarder.start([sys.executable, "-I", _FORWARD, *arguments], self._environment())
        write_node_settings(self.layout, spaces.groups.name)

    def start_containerd(self, images: Mapping[str, Path]) -> None:
        """Start containerd and import these images, given by name.

        Raises: ProcessError.
        """
        self.start("containerd")
        deadline = time.monotonic() + _READY_SECONDS
        while self._ctr("version").returncode:
            self._require("containerd", deadline)
        present = self._ctr("images", "list", "--quiet").stdout.split()
        for name, file in images.items():
            if name not in present:
                self.import_image(file)

    def import_image(self, file: Path) -> None:
        """Import the images in an archive.

        Raises: ProcessError.
        """
        self._images("import", "--local", str(file))

    def push_image(self, name: str, target: str, login: str) -> None:
        """Push an image of the node to a registry without TLS. `login` is `<user>:<password>`.

        Raises: ProcessError.
        """
        self._images("tag", "--force", name, target)
        self._images("push", "--plain-http", "--user", login, target)

    def start(self, name: str) -> None:
        """Start a program of the node unless it runs."""
        process = self._process(name)
        if process.pid() is None:
            arguments = NODE_ARGUMENTS[name](self.layout, self.plan)
            process.start([*self.entering, self.programs[name], *arguments], self._environment())

    def _images(self, verb: str, *arguments: str) -> None:
        done = self._ctr("images", verb, *arguments)
        if done.returncode:
            raise ProcessError(f"ctr images {verb} {arguments[-1]}: {done.stderr.strip()}")

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = str(self.programs["ctr"])
        fixed = (f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io")
        return completed([*self.entering, program, *fixed, *arguments], self._environment())

    def _require(self, name: str, deadline: float) -> None:
        process = self._process(name)
        if first_ended([process], within_seconds=_BETWEEN_PROBES_SECONDS):
            raise ProcessError(f"{name} ended; log: {process.log}")
        if time.monotonic() > deadline:
            raise ProcessError(f"{name}: not ready after {_READY_SECONDS} s; log: {process.log}")

    def _process(self, name: str) -> Process:
        return Process(name, self.layout.records, self.layout.logs)

    def _environment(self) -> dict[str, str]:
        """The environment of the node's programs: containerd finds its shim on PATH."""
        shim_folder = self.programs["containerd-shim-runc-v2"].parent
        return {"PATH": f"{shim_folder}:{PATH}", "HOME": str(self.layout.scratch)}
