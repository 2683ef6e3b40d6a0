"""A real node beside the control plane of an instance: its namespaces, programs and images.

A crash may leave programs, containers, mounts or control groups behind. So the namespaces determine what
belongs to the node, no matter which process started it.
"""

import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devcluster.layout import Layout, Plan
from devcluster.node.components import CONTAINERD_SOCKET, NODE_ARGUMENTS, write_node_settings
from devcluster.node.machine import PATH
from devcluster.node.namespaces import ControlGroup, Namespaces
from devcluster.processes import Process, ProcessError, completed, first_ended
from kube_runtime.errors import ConfigError

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
