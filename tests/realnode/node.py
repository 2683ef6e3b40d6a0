"""A real node beside the control plane of an instance: its namespaces, programs and images.

A crash may leave programs, containers, mounts or control groups behind. So the namespaces determine what
belongs to the node, no matter which process started it.
"""

import subprocess
import sys
import time
from collections.abc import Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from devcluster import DEFAULT_NAME
from devcluster.components import USERS, write_credentials
from devcluster.instance import Instance
from devcluster.layout import Layout, Plan, state_folder
from devcluster.processes import ProcessError, completed, stop
from devcluster.programs import CONTROL_PLANE, Binaries, Pinned, build, find
from devcluster.progress import SILENT, ProgressReporter
from devcluster.startup import COMPANION, READY_SECONDS, Startup, process
from kube_runtime.errors import ConfigError
from realnode.build import build_program_image, saved_image
from realnode.components import (
    CONTAINERD_SOCKET,
    NODE_ARGUMENTS,
    NODE_NAME,
    NODE_USERS,
    folder_of,
    server_flags,
    write_node_credentials,
    write_node_settings,
)
from realnode.machine import NODE_ADDRESS, PATH, ControlGroup, Namespaces, require_node_support

HERE = Path(__file__).parent
NATS = Pinned(HERE / "gomodule-nats", "the NATS server", "github.com/nats-io/nats-server/v2")
NODE_MODULES: Sequence[tuple[Pinned, tuple[str, ...]]] = (
    (Pinned(HERE / "gomodule-kubelet", "the kubelet", CONTROL_PLANE.package), ("kubelet", "kube-proxy")),
    (
        Pinned(HERE / "gomodule-containerd", "containerd", "github.com/containerd/containerd/v2"),
        ("containerd", "containerd-shim-runc-v2", "ctr"),
    ),
    (Pinned(HERE / "gomodule-pause", "the pause container", ""), ("pause",)),
    (Pinned(HERE / "gomodule-coredns", "CoreDNS", "github.com/coredns/coredns"), ("coredns",)),
    (NATS, ("nats-server",)),
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


FORWARDER = "forwarder"
_FORWARD = Path(__file__).with_name("forward.py")
_MANIFEST = Path(__file__).with_name("node.yaml")
_HIDDEN = (Path("/run"), Path("/var"), Path("/mnt"))


def namespaces(layout: Layout) -> Namespaces:
    """The namespaces of an instance, whether or not they exist."""
    return Namespaces(folder_of(layout), ControlGroup(f"dynamo-operator-{layout.folder.name}"))


class RealStartup(Startup):
    """Starts and stops the processes of an instance with a real node, all in its namespaces."""

    controllers = ("kube-controller-manager", "kube-scheduler", *NODE_ARGUMENTS)

    def __init__(self, layout: Layout, plan: Plan, progress: ProgressReporter) -> None:
        super().__init__(layout, plan, progress)
        self.entering = namespaces(layout).entering

    @staticmethod
    def find_programs(progress: ProgressReporter) -> Binaries:
        """The programs of the control plane and of the node by name, built if need be.

        Raises: ConfigError if one cannot be built.
        """
        return {**find(progress), **build_node_programs(progress)}

    @staticmethod
    def write_credentials(layout: Layout, plan: Plan, instance: str) -> None:
        """Write the credentials of a new instance, with those of the node."""
        addresses = (IPv4Address(NODE_ADDRESS),)
        authority = write_credentials(layout, plan, instance, {**USERS, **NODE_USERS}, addresses)
        write_node_credentials(layout, authority)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return (FORWARDER, *super().names())

    @classmethod
    def stop_all(cls, layout: Layout) -> None:
        """Stop every process, end containers, and remove the namespaces.

        Raises: ProcessError.
        """
        spaces = namespaces(layout)
        stop([process(layout, name) for name in (COMPANION, *cls.controllers, FORWARDER)])
        spaces.end_containers()  # the API server would wait for their watches
        super().stop_all(layout)
        spaces.remove()

    def start(self, instance: str, crd_files: Sequence[Path]) -> None:
        """Create the namespaces, start containerd with the node's images, then the rest.

        Raises: ProcessError, ConfigError, KubectlError.
        """
        self.progress.step(f"starting {instance}: namespaces, containerd, images")
        spaces = namespaces(self.layout)
        for folder in (self.layout.folder, _MANIFEST.parent):
            if any(folder.is_relative_to(hidden) for hidden in _HIDDEN):
                raise ConfigError(str(folder), "a real node has its own /run, /var and /mnt")
        if not spaces.exist:
            spaces.groups.remove()
            spaces.create()
        forwarder = process(self.layout, FORWARDER)
        if forwarder.pid() is None:
            arguments = (str(self.plan.server_port), spaces.network)
            forwarder.start([sys.executable, "-I", _FORWARD, *arguments], self.environment())
        write_node_settings(self.layout, spaces.groups.name)
        self.launch("containerd")
        deadline = time.monotonic() + READY_SECONDS
        while self._ctr("version").returncode:
            self.require_running("containerd")
            if time.monotonic() > deadline:
                raise ProcessError(f"containerd: not ready; log: {self.layout.logs}")
        present = self._ctr("images", "list", "--quiet").stdout.split()
        for name, program in _IMAGES.items():
            if name not in present:
                build_program_image(name, self.binaries[program])
                self.load(name)
        super().start(instance, crd_files)

    def apply_nodes(self) -> None:
        """Apply what the node needs; the kubelet registers it."""
        self.kubectl.apply(_MANIFEST)

    def await_nodes(self) -> None:
        self.wait("--for=create", f"node/{NODE_NAME}")
        self.wait("--for=condition=Ready", f"node/{NODE_NAME}")
        self.wait("--for=condition=Available", "deployment/coredns", namespace="kube-system")

    def arguments(self, name: str) -> list[str]:
        """The arguments of a program."""
        if name in NODE_ARGUMENTS:
            return NODE_ARGUMENTS[name](self.layout, self.plan)
        return super().arguments(name)

    def server_flags(self) -> list[str]:
        """The API server listens for pods too, and reaches them by the node's network."""
        return server_flags(self.layout)

    def environment(self) -> dict[str, str]:
        """The environment of the programs: containerd finds its shim on PATH."""
        shim_folder = self.binaries["containerd-shim-runc-v2"].parent
        return {"PATH": f"{shim_folder}:{PATH}", "HOME": str(self.layout.scratch)}

    def load(self, name: str, target: str = "") -> None:
        """Load an image that was built here, under the name `target` if given.

        Raises: ConfigError, ProcessError.
        """
        with saved_image(name, target) as file:
            self.images("import", "--local", str(file))

    def images(self, verb: str, *arguments: str) -> None:
        """Run a command on the images of the node.

        Raises: ProcessError.
        """
        done = self._ctr("images", verb, *arguments)
        if done.returncode:
            raise ProcessError(f"ctr images {verb} {arguments[-1]}: {done.stderr.strip()}")

    def _ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        fixed = (f"--address={CONTAINERD_SOCKET}", "--namespace=k8s.io")
        own: list[str | Path] = [self.binaries["ctr"], *fixed, *arguments]
        return completed([*self.entering, *own], self.environment())


class RealInstance(Instance):
    """A local control plane with one real node instead of fake ones."""

    startup = RealStartup
    default_nodes = 0

    def __init__(self, name: str = DEFAULT_NAME, root: Path | None = None) -> None:
        super().__init__(name, root or state_folder().with_name("realnode"))

    def up(self, **arguments: Any) -> None:
        """As of every instance, on a machine that can be a node.

        Raises: ConfigError, ProcessError, KubectlError.
        """
        require_node_support(arguments.get("progress", SILENT))
        super().up(**arguments)

    @property
    def entering(self) -> tuple[str, ...]:
        """The prefix of a command that runs it on the node, in its network."""
        return namespaces(self._layout).entering

    @property
    def network(self) -> Path:
        return namespaces(self._layout).network

    @property
    def node_folder(self) -> Path:
        """The folder of the node's `run` and `var`."""
        return folder_of(self._layout)

    def load_image(self, file: Path, *, progress: ProgressReporter = SILENT) -> None:
        """Import the images of an OCI archive into the node.

        Raises: ProcessError.
        """
        self._real_startup(progress).images("import", "--local", str(file))

    def load_built(self, name: str, target: str = "") -> None:
        """Load an image that was built here, under the name `target` if given.

        Raises: ConfigError, ProcessError.
        """
        self._real_startup(SILENT).load(name, target)

    def push_image(self, name: str, target: str, login: str) -> None:
        """Push an image of the node to a registry without TLS. `login` is `<user>:<password>`.

        Raises: ProcessError.
        """
        startup = self._real_startup(SILENT)
        startup.images("tag", "--force", name, target)
        startup.images("push", "--plain-http", "--user", login, target)

    def _real_startup(self, progress: ProgressReporter) -> RealStartup:
        return RealStartup(self._layout, self._plan(), progress)
