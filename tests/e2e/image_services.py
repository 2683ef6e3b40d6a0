"""What builds need in the cluster: a registry, BuildKit, an archive to fetch, and images to start from."""

import base64
import io
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster.world import PODS, World
from devcluster.programs import build
from devcluster.progress import Lines
from e2e.cluster import RealCluster
from kube_runtime.types.meta import Kind
from realnode.build import BASE as DEBIAN
from realnode.build import build_base, build_program_image
from realnode.machine import NODE_ADDRESS
from realnode.servers import BUILDKIT, PASSWORD, USER, build_daemon, registry

ARCHIVE = Path(__file__).parent / "archive"
REGISTRY_OF_NODES = "localhost:5000"
"""Under this name the container runtime pulls: with loopback addresses it speaks no TLS by default."""
REGISTRY_OF_PODS = f"{NODE_ADDRESS}:5000"
BUILDKIT_URL = f"tcp://{NODE_ADDRESS}:1234"
BASE, CLIENT = "localhost/base:1", "localhost/buildctl:1"
CONFIG_MAPS = Kind("", "v1", "ConfigMap", "configmaps")
_PORT = 8000


@dataclass(frozen=True, slots=True)
class ImageServices:
    """The images in the registry: `base` for builds to start from, `client` with BuildKit's client."""

    base: str
    client: str


@contextmanager
def image_services(cluster: RealCluster, folder: Path) -> Iterator[ImageServices]:
    """A registry that asks for a login, and BuildKit's daemon, on the node; built if need be."""
    progress, instance = Lines(sys.stderr), cluster.instance
    client = build(progress, BUILDKIT) / "buildctl"
    build_base(progress)
    build_program_image(CLIENT, client, "ENV PATH=/")
    with (
        registry(":5000", folder / "registry", entering=instance.entering, progress=progress),
        build_daemon(
            f"{NODE_ADDRESS}:1234",
            folder / "buildkit",
            entering=instance.entering,
            registries=[REGISTRY_OF_PODS],
            progress=progress,
        ),
    ):
        for name, built in {BASE: DEBIAN, CLIENT: CLIENT}.items():
            instance.load_built(built, name)
            target = name.replace("localhost", REGISTRY_OF_NODES)
            instance.push_image(name, target, f"{USER}:{PASSWORD}")
        yield ImageServices(f"{REGISTRY_OF_PODS}/base:1", f"{REGISTRY_OF_NODES}/buildctl:1")


def offer_archive(world: World, path: str) -> str:
    """The address of a server in the world's namespace that has the archive at that path."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        archive.add(ARCHIVE, arcname=".")
    name, key = "archives", "chat.tar"
    data = {key: base64.b64encode(content.getvalue()).decode()}
    world.create(CONFIG_MAPS, {"metadata": {"name": name}, "binaryData": data})
    container = {
        "name": "server",
        "image": BASE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-m", "http.server", str(_PORT), "--directory=/archives"],
        "readinessProbe": {"httpGet": {"path": path, "port": _PORT}, "periodSeconds": 1},
        "volumeMounts": [{"name": name, "mountPath": "/archives"}],
    }
    items = [{"key": key, "path": path.removeprefix("/")}]
    volume = {"name": name, "configMap": {"name": name, "items": items}}
    spec = {"containers": [container], "volumes": [volume], "terminationGracePeriodSeconds": 0}
    world.create(PODS, {"metadata": {"name": name}, "spec": spec})
    ready = world.eventually(
        PODS,
        name,
        lambda body: any(
            each["type"] == "Ready" and each["status"] == "True"
            for each in body["status"].get("conditions", ())
        ),
    )
    return f"http://{ready['status']['podIP']}:{_PORT}"
