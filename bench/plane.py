"""A new control plane for one run: etcd in memory, huge nodes, our CRDs installed."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.processes import Process
from devcluster.instance import Instance
from devcluster.startup import node_name
from dynamo_operator.component.api import VERSION
from dynamo_operator.crds import custom_resource_definition, custom_resource_definitions
from kube_runtime.types.meta import Resource

NODES = 4
_CAPACITY = {"cpu": "100k", "memory": "100Ti", "pods": "20k", "nvidia.com/gpu": "20k"}
"""By default, a node has room for 110 pods; a thousand graphs have three thousand."""

_MEMORY = Path("/dev/shm")  # noqa: S108 - so that disks do not matter


@dataclass(frozen=True, slots=True)
class Plane:
    """A control plane, and its folder."""

    instance: Instance
    folder: Path

    def process(self, name: str) -> Process:
        """A process of the control plane, such as `kube-apiserver`."""
        pid = self.instance.status().pids[name]
        assert pid is not None, f"{name} does not run"
        return Process(pid)


@contextmanager
def plane(*more: type[Resource], stored: str = VERSION) -> Iterator[Plane]:
    """Run a control plane with additional kinds, and remove it at the end of the block.

    `stored` is the version of ours, the only one: with a second one, the API server has a second cache of
    each kind, and converts each change for it.
    """
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=_MEMORY if _MEMORY.is_dir() else None))
    instance = Instance("bench", folder)
    definitions = folder / "definitions.json"
    items = [*custom_resource_definitions(None, stored), *map(custom_resource_definition, more)]
    body = {"apiVersion": "v1", "kind": "List", "items": items}
    definitions.write_bytes(msgspec.json.encode(body))
    try:
        instance.up(crd_files=(definitions,), nodes=NODES)
        room = msgspec.json.encode({"status": {"capacity": _CAPACITY, "allocatable": _CAPACITY}})
        for number in range(NODES):
            patch = ("--subresource=status", "--type=merge", "-p", room.decode())
            instance.kubectl("patch", "node", node_name(number), *patch)
        yield Plane(instance, folder)
    finally:
        instance.down()
        shutil.rmtree(folder, ignore_errors=True)
