"""NATS and etcd start with what the chart gives them, and answer the probes that it has for them."""

import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from cluster.charts.conftest import PLATFORM, rendered
from cluster.world import PATIENCE_SECONDS
from devcluster.layout import free_ports
from devcluster.programs import CONTROL_PLANE, Helm, build, find
from devcluster.progress import Silent
from kube_runtime.types.meta import Object
from realnode.node import NATS
from realnode.servers import server_running

ETCD_CLIENT, ETCD_PEER = "2379", "2380"
RELEASE = {"release": "r", "namespace": "ns"}
PROBES = ("startupProbe", "readinessProbe", "livenessProbe")

pytestmark = pytest.mark.cluster


def container(found: list[Object], name: str) -> Object:
    [server] = [
        each for each in found if each["kind"] == "StatefulSet" and each["metadata"]["name"] == f"r-{name}"
    ]
    [only] = server["spec"]["template"]["spec"]["containers"]
    body: Object = only
    return body


def answers(port: int, path: str, within_seconds: float = PATIENCE_SECONDS) -> int:
    """The first status of a probe that is not a failure."""
    deadline = time.monotonic() + within_seconds
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
                status: int = answer.status
                return status
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_etcd_starts_and_is_probed(offline: Helm, tmp_path: Path) -> None:
    server = container(rendered(offline, "--set=etcd.enabled=true", **RELEASE), "etcd")
    client, peer = free_ports(2)
    arguments = [
        each.replace(ETCD_CLIENT, str(client))
        .replace(ETCD_PEER, str(peer))
        .replace("r-etcd.ns.svc", "127.0.0.1")
        .replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        .replace("/data", str(tmp_path))
        for each in server["args"]
    ]
    program = find(Silent())["etcd"]
    with server_running([program, *arguments], tmp_path / "etcd.log", "ready to serve client requests"):
        for probe in PROBES:
            assert 200 == answers(client, server[probe]["httpGet"]["path"])
        assert (tmp_path / "default.etcd").is_dir()


@pytest.fixture(scope="module")
def nats() -> Path:
    """The server's program. A fixture, because the first build takes longer than a test may."""
    return build(Silent(), NATS) / "nats-server"


def test_nats_starts_and_is_probed(nats: Path, offline: Helm, tmp_path: Path) -> None:
    values = ("--set=nats.enabled=true", "--set=nats.config.merge.debug=true")
    client, monitor = free_ports(2)
    ports = (f"--set=nats.config.nats.port={client}", f"--set=nats.config.monitor.port={monitor}")
    store = f"--set=nats.config.jetstream.fileStore.dir={tmp_path / 'data'}"
    found = rendered(offline, *values, *ports, store, **RELEASE)
    server = container(found, "nats")
    [config] = [each for each in found if each["kind"] == "ConfigMap"]
    [(name, text)] = config["data"].items()
    assert ["--config", f"/etc/nats/{name}"] == server["args"]
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    command = [nats, "--config", file, "--addr", "127.0.0.1"]
    with server_running(command, tmp_path / "nats.log", "Server is ready"):
        for probe in PROBES:
            assert 200 == answers(monitor, server[probe]["httpGet"]["path"])
        with urllib.request.urlopen(f"http://127.0.0.1:{monitor}/varz", timeout=60) as answer:
            told = yaml.safe_load(answer.read())
    assert (client, 15728640) == (told["port"], told["max_payload"])
    assert (tmp_path / "data").is_dir()


def test_the_versions_are_those_that_are_tried_here() -> None:
    def tag(chart: str, *path: str) -> str:
        value = yaml.safe_load((PLATFORM / "charts" / chart / "values.yaml").read_text("utf-8"))
        for key in path:
            value = value[key]
        return str(value)

    etcd = (CONTROL_PLANE.folder / "go.mod").read_text("utf-8")
    assert f"go.etcd.io/etcd/server/v3 {tag('etcd', 'image', 'tag')}" in etcd
    assert f"{NATS.version.removeprefix('v')}-alpine" == tag("nats", "container", "image", "tag")
