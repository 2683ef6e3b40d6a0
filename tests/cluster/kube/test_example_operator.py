"""The example operator of kube-runtime works on a real API server, as its README says."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.world import CONFIG_MAP, PATIENCE_SECONDS, World
from kube_runtime.types.meta import Kind

PROGRAM = Path(__file__).parents[3] / "packages/kube-runtime/examples/greetings.py"
GREETING = Kind("example.com", "v1", "Greeting", "greetings")

pytestmark = pytest.mark.cluster


@pytest.fixture
def greetings(control_plane: ControlPlane, tmp_path: Path) -> Iterator[None]:
    """The CRD that the example prints, and the example running."""
    printed = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, PROGRAM, "crd"], capture_output=True, check=True
    )
    file = tmp_path / "crd.json"
    file.write_bytes(printed.stdout)
    control_plane.install_crds(files=[file])
    environment = {**os.environ, "KUBECONFIG": str(control_plane.kubeconfig)}
    with subprocess.Popen([sys.executable, PROGRAM], env=environment) as process:  # noqa: S603  # as above
        yield
        assert process.poll() is None
        process.terminate()
        assert 0 == process.wait(PATIENCE_SECONDS)


@pytest.mark.usefixtures("greetings")
def test_the_example_creates_follows_repairs_and_reports(control_plane: ControlPlane, namespace: str) -> None:
    world: World = control_plane.world(namespace)

    def text() -> str:
        found = world.get(CONFIG_MAP, "first-greeting") or {}
        return str(found.get("data", {}).get("text", ""))

    def reported() -> str:
        found = world.get(GREETING, "first") or {}
        return str(found.get("status", {}).get("configMap", ""))

    world.create(GREETING, {"metadata": {"name": "first"}, "spec": {"name": "cluster"}})
    world.until(lambda: text() == "Hello, cluster!" and reported() == "first-greeting")
    world.patch(GREETING, "first", {"spec": {"name": "reader"}})
    world.until(lambda: text() == "Hello, reader!")
    world.patch(CONFIG_MAP, "first-greeting", {"data": {"text": "drift"}})
    world.until(lambda: text() == "Hello, reader!")
    world.delete(CONFIG_MAP, "first-greeting")
    world.until(lambda: text() == "Hello, reader!")
    version = (world.get(CONFIG_MAP, "first-greeting") or {})["metadata"]["resourceVersion"]
    world.patch(GREETING, "first", {"metadata": {"labels": {"any": "label"}}})
    world.create(GREETING, {"metadata": {"name": "second"}})
    world.until(lambda: world.get(CONFIG_MAP, "second-greeting"))
    assert version == (world.get(CONFIG_MAP, "first-greeting") or {})["metadata"]["resourceVersion"]
    world.delete(GREETING, "first")
    world.until(lambda: world.get(CONFIG_MAP, "first-greeting") is None)


def test_the_example_prints_its_crd_as_json() -> None:
    printed = subprocess.run(  # noqa: S603  # our own program
        [sys.executable, PROGRAM, "crd"], capture_output=True, check=True
    )
    assert "greetings.example.com" == json.loads(printed.stdout)["metadata"]["name"]
