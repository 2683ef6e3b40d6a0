"""Start and stop the processes of one instance in order.

Startup polls only the readiness of the API server, and waits for the rest with watches. It fails as soon as a
process ends.
"""

import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from devcluster import components
from devcluster.layout import Layout, Plan
from devcluster.processes import Process, ProcessError, first_ended, last_line, stop
from devcluster.programs import Binaries, find
from devcluster.progress import ProgressReporter
from kube_runtime.types.meta import Object

GPUS_PER_NODE = 8
_RESOURCES = {
    "cpu": "64",
    "memory": "512Gi",
    "ephemeral-storage": "1Ti",
    "pods": "110",
    "nvidia.com/gpu": str(GPUS_PER_NODE),
}
_GPU_LABELS = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/gpu.count": str(GPUS_PER_NODE),
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
}
"""The labels of the NVIDIA GPU feature discovery."""


def node_name(index: int) -> str:
    """The name of the node with this index, from 0."""
    return f"gpu-{index}"


def node(index: int) -> Object:
    """The Node with this index."""
    name = node_name(index)
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **_GPU_LABELS,
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": _RESOURCES, "allocatable": _RESOURCES},
    }


# With the default of 100, collection takes a tenth of the API server's CPU time and a third of its start.
_COLLECTOR = {"GOGC": "200"}

COMPANION = "operator"
"""The operator under test, which a user runs on the control plane and which ends first."""
_STORE = ("etcd", "kube-apiserver")
READY_SECONDS = 180
"""How long a process may take to become ready. Long, because one that ends is reported at once."""
_BETWEEN_PROBES_SECONDS = 0.1
_FIRST_WAIT_SECONDS = 3


class Startup:
    """Starts and stops the processes of an instance, whose nodes are simulated by kwok."""

    controllers: ClassVar[tuple[str, ...]] = (
        *("kube-controller-manager", "kube-scheduler", "kwok"),
        components.KUBELET,
    )
    """What starts after the API server, in this order."""
    entering: tuple[str, ...] = ()
    """The prefix of every command."""

    def __init__(self, layout: Layout, plan: Plan, progress: ProgressReporter) -> None:
        self.layout = layout
        self.plan = plan
        self.progress = progress
        self.binaries = self.find_programs(progress)

    @staticmethod
    def find_programs(progress: ProgressReporter) -> Binaries:
        """The programs of the instance by name, built if need be. Raises: ConfigError."""
        return find(progress)

    @staticmethod
    def write_credentials(layout: Layout, plan: Plan, instance: str) -> None:
        """Write the credentials of a new instance."""
        components.write_credentials(layout, plan, instance)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The processes in the order in which they start."""
        return (*_STORE, *cls.controllers)

    @classmethod
    def stop_all(cls, layout: Layout) -> None:
        """Stop every process: clients of the API server first, etcd last. Raises: ProcessError."""
        stop([process(layout, COMPANION)])  # while it can still release its Lease
        stop([process(layout, name) for name in cls.controllers])
        for name in reversed(_STORE):
            stop([process(layout, name)])

    @property
    def kubectl(self) -> components.Kubectl:
        """kubectl as administrator."""
        return components.Kubectl(
            program=self.binaries["kubectl"],
            kubeconfig=self.layout.kubeconfigs / "admin.yaml",
            cache=self.layout.scratch,
        )

    def start(self, instance: str, crd_files: Sequence[Path]) -> None:
        """Start what does not run, apply the nodes and CRDs; return when pods can be scheduled.

        Raises: ProcessError, KubectlError.
        """
        self.progress.step(f"starting {instance}: etcd, kube-apiserver")
        self._start_api_server()
        self.apply_nodes()
        self.install_crds(crd_files)
        self.progress.step(f"starting {instance}: controllers, scheduler, nodes")
        components.write_scheduler_settings(self.layout)
        self.launch(*self.controllers)
        self.await_nodes()
        self.wait("--for=create", "serviceaccount/default", "configmap/kube-root-ca.crt")

    def apply_nodes(self) -> None:
        """Apply the Nodes and what they need."""
        file = self.layout.scratch / "nodes.json"
        nodes = [node(index) for index in range(self.plan.nodes)]
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
        self.kubectl.apply(components.MANIFESTS / "kwok-rbac.yaml", file)

    def await_nodes(self) -> None:
        """Return when the nodes are ready, and the API server reaches their kubelet."""
        deadline = time.monotonic() + READY_SECONDS
        while not components.egress_socket(self.layout).is_socket():
            self.require_running(components.KUBELET)
            if time.monotonic() > deadline:
                log = process(self.layout, components.KUBELET).log
                raise ProcessError(f"{components.KUBELET}: not ready after {READY_SECONDS} s; log: {log}")
        if names := [f"node/{node_name(index)}" for index in range(self.plan.nodes)]:
            self.wait("--for=condition=Ready", *names)

    def install_crds(self, crd_files: Sequence[Path]) -> None:
        """Apply CRDs; return when they are established. Raises: KubectlError, ProcessError."""
        if crd_files:
            self.kubectl.apply(*crd_files)
            files = [f"--filename={file}" for file in crd_files]
            self.wait("--for=condition=Established", *files, running=_STORE)

    def restart_controller_manager(self) -> None:
        """Restart the controller manager."""
        stop([process(self.layout, "kube-controller-manager")])
        self.launch("kube-controller-manager")

    def launch(self, *names: str) -> None:
        """Start these programs unless they run."""
        for name in names:
            starting = process(self.layout, name)
            if starting.pid() is None:
                if name == components.KUBELET:
                    components.egress_socket(self.layout).unlink(missing_ok=True)
                    program, environment = Path(sys.executable), dict(os.environ)
                else:
                    program, environment = self.binaries[name], self.environment()
                command: list[str | Path] = [*self.entering, program, *self.arguments(name)]
                starting.start(command, environment, folder=self.layout.folder)

    def arguments(self, name: str) -> list[str]:
        """The arguments of a program."""
        own = components.ARGUMENTS[name](self.layout, self.plan)
        return own + self.server_flags() if name == "kube-apiserver" else own

    def server_flags(self) -> list[str]:
        """Further flags of the API server, which win: how it reaches nodes and pods."""
        return components.egress_flags(self.layout)

    def environment(self) -> dict[str, str]:
        """The environment of the programs."""
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.layout.scratch), **_COLLECTOR}

    def wait(
        self, condition: str, *objects: str, namespace: str = "default", running: Sequence[str] = ()
    ) -> None:
        """Wait for a condition of objects, as `kubectl wait` does, while these or all processes run.

        Whether they run is checked between waits of kubectl. Each has twice the time of the one before, as a
        busy machine may need more than the first one's for the requests alone.

        Raises: ProcessError.
        """
        deadline, seconds = time.monotonic() + READY_SECONDS, _FIRST_WAIT_SECONDS
        while True:
            try:
                self.kubectl(
                    *("wait", f"--namespace={namespace}", f"--timeout={seconds}s"), *(condition, *objects)
                )
            except components.KubectlError as error:
                self.require_running(*(running or self.names()))
                if time.monotonic() > deadline:
                    raise ProcessError(f"{error}; logs: {self.layout.logs}") from error
                seconds *= 2
            else:
                return

    def require_running(self, *names: str) -> None:
        """Watch processes for a moment. Raises: ProcessError, with the last line of its log, if one ends."""
        running = [process(self.layout, name) for name in names]
        if ended := first_ended(running, within_seconds=_BETWEEN_PROBES_SECONDS):
            text = ended.log.read_text(errors="replace") if ended.log.exists() else ""
            cause = last_line(text, "no output")
            raise ProcessError(f"{ended.name} ended: {cause}; log: {ended.log}")

    def _start_api_server(self) -> None:
        components.write_egress_selector(self.layout)
        self.launch(*_STORE)
        deadline = time.monotonic() + READY_SECONDS
        while not components.is_ready(self.plan.server_port, self.layout.pki / "ca.crt"):
            self.require_running(*_STORE)
            if time.monotonic() > deadline:
                log = process(self.layout, "kube-apiserver").log
                raise ProcessError(f"kube-apiserver: not ready after {READY_SECONDS} s; log: {log}")


def process(layout: Layout, name: str) -> Process:
    """The process with this name."""
    return Process(name, layout.records, layout.logs)
