"""Start and stop the processes of one instance in order.

Startup polls only the readiness of the API server, and waits for the rest with watches. It fails as soon as a
process ends.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devcluster.addons import leaderworkerset
from devcluster.components import (
    ARGUMENTS,
    MANIFESTS,
    Kubectl,
    KubectlError,
    is_ready,
    write_scheduler_settings,
)
from devcluster.layout import Layout, Plan
from devcluster.node.components import NODE_NAME
from devcluster.node.real_node import NODE_PROCESSES, RealNode, namespaces
from devcluster.processes import Process, ProcessError, first_ended, last_line, stop
from devcluster.programs import Binaries
from kube_runtime.kind import Object

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


def node_list(count: int) -> Object:
    """The first `count` nodes as one List."""
    return {"apiVersion": "v1", "kind": "List", "items": [node(index) for index in range(count)]}


STORE = ("etcd", "kube-apiserver")
COMPANION = "operator"
"""The operator under test, which a user runs on the control plane and which ends first."""
CONTROLLERS = ("kube-controller-manager", "kube-scheduler", "kwok")
_REAL_CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
_NODE_MANIFESTS = MANIFESTS / "node.yaml"
_READY_SECONDS = 60
_BETWEEN_PROBES_SECONDS = 0.1
_WAIT_SECONDS = 3  # between checks that all processes still run
_PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True, slots=True)
class Startup:
    """Starts the processes of an instance. `node` is None if the nodes are fake."""

    layout: Layout
    plan: Plan
    binaries: Binaries
    node: RealNode | None = None

    @property
    def kubectl(self) -> Kubectl:
        """kubectl as administrator."""
        return Kubectl(
            program=self.binaries["kubectl"],
            kubeconfig=self.layout.kubeconfigs / "admin.yaml",
            cache=self.layout.scratch,
        )

    def start_api_server(self) -> None:
        """Start etcd and the API server; return when it is ready.

        Raises: ProcessError.
        """
        self._launch(STORE)
        running = [process(self.layout, name) for name in STORE]
        deadline = time.monotonic() + _READY_SECONDS
        while not is_ready(self.plan.server_port, self.layout.pki / "ca.crt"):
            ended = first_ended(running, within_seconds=_BETWEEN_PROBES_SECONDS)
            if ended is not None:
                raise ProcessError(_cause_of_end(ended))
            if time.monotonic() > deadline:
                raise ProcessError(
                    f"kube-apiserver: not ready after {_READY_SECONDS} s; log: {running[-1].log}"
                )

    def apply_objects(self, crd_files: Sequence[Path]) -> None:
        """Apply the nodes, their RBAC, and CRDs.

        Raises: KubectlError.
        """
        if self.node is None:
            nodes = self.layout.scratch / "nodes.json"
            nodes.write_text(json.dumps(node_list(self.plan.nodes)))
            self.kubectl.apply(MANIFESTS / "kwok-rbac.yaml", nodes)
        else:
            self.kubectl.apply(_NODE_MANIFESTS)
        self.install_crds(crd_files)

    def install_crds(self, crd_files: Sequence[Path]) -> None:
        """Apply CRDs; return when they are established.

        Raises: KubectlError.
        """
        if crd_files:
            self.kubectl.apply(*crd_files)
            self._wait_for_crds([f"--filename={file}" for file in crd_files])

    def start_controllers(self) -> None:
        """Start the controllers, the scheduler and kwok or the kubelet; return when the nodes are ready.

        A real node must run containerd already.

        Raises: ProcessError.
        """
        write_scheduler_settings(self.layout)
        self._launch(CONTROLLERS if self.node is None else _REAL_CONTROLLERS)
        if self.node is not None:
            self.node.start("kubelet")
            self.node.start("kube-proxy")
            self._wait("--for=create", f"node/{NODE_NAME}")
            self._wait("--for=condition=Ready", f"node/{NODE_NAME}")
            self._wait("--for=condition=Available", "deployment/coredns", namespace="kube-system")
        if self.plan.nodes:
            self._wait("--for=condition=Ready", *self._nodes())
        self._wait("--for=create", "serviceaccount/default", "configmap/kube-root-ca.crt")

    def restart_controller_manager(self) -> None:
        """Restart the controller manager."""
        stop([process(self.layout, "kube-controller-manager")])
        self._launch(("kube-controller-manager",))

    def start_leader_worker_sets(self, program: Path) -> None:
        """Start the LeaderWorkerSet controller; its CRD must be installed.

        Raises: ProcessError, KubectlError.
        """
        leaderworkerset.start(self.layout, self.kubectl, program, self._environment())

    def _wait_for_crds(self, files: Sequence[str]) -> None:
        """Wait until CRDs are established; retry while one has no conditions yet, where kubectl fails."""
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            try:
                self.kubectl(
                    "wait", "--for=condition=Established", f"--timeout={_READY_SECONDS}s", *files
                )
            except KubectlError as error:
                if "accessor error" not in str(error) or time.monotonic() > deadline:
                    raise
            else:
                return

    def _nodes(self) -> list[str]:
        return [f"node/{node_name(index)}" for index in range(self.plan.nodes)]

    def _wait(self, condition: str, *objects: str, namespace: str = "default") -> None:
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            try:
                self.kubectl(
                    *("wait", f"--namespace={namespace}", f"--timeout={_WAIT_SECONDS}s"),
                    *(condition, *objects),
                )
            except KubectlError as error:
                running = [process(self.layout, name) for name in process_names(self.plan)]
                if ended := first_ended(running, within_seconds=_BETWEEN_PROBES_SECONDS):
                    raise ProcessError(_cause_of_end(ended)) from error
                if time.monotonic() > deadline:
                    raise ProcessError(f"{error}; logs: {self.layout.logs}") from error
            else:
                return

    def _launch(self, names: Sequence[str]) -> None:
        for name in names:
            starting = process(self.layout, name)
            if starting.pid() is None:
                arguments = ARGUMENTS[name](self.layout, self.plan)
                entering = self.node.entering if self.node else ()
                starting.start([*entering, self.binaries[name], *arguments], self._environment())

    def _environment(self) -> dict[str, str]:
        return {"PATH": _PATH, "HOME": str(self.layout.scratch)}


def process_names(plan: Plan) -> tuple[str, ...]:
    """The processes of an instance in the order in which they start."""
    if plan.is_real:
        return (*STORE, *_REAL_CONTROLLERS, *NODE_PROCESSES)
    return tuple(ARGUMENTS)


def process(layout: Layout, name: str) -> Process:
    """The process with this name."""
    return Process(name, layout.records, layout.logs)


def stop_all(layout: Layout) -> None:
    """Stop every process of an instance: clients of the API server first, etcd last, then the node.

    Raises: ProcessError.
    """
    clients = (*CONTROLLERS, leaderworkerset.NAME, *reversed(NODE_PROCESSES))
    spaces = namespaces(layout)
    stop([process(layout, COMPANION)])  # while it can still release its Lease
    stop([process(layout, name) for name in clients])
    spaces.end_containers()  # the API server would wait for their watches
    for name in ("kube-apiserver", "etcd"):
        stop([process(layout, name)])
    spaces.remove()


def _cause_of_end(ended: Process) -> str:
    text = ended.log.read_text(errors="replace") if ended.log.exists() else ""
    return f"{ended.name} ended: {last_line(text, 'no output')}; log: {ended.log}"
