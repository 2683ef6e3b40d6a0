"""The API server accepts every document of the examples, here in v1alpha1.

`test_v1beta1_on_server.py` sends those of v1beta1 as they are written.
"""

from pathlib import Path

import pytest
import yaml

from cluster.conftest import ControlPlane
from cluster.guides import in_v1alpha1

FOLDER = Path(__file__).parents[3] / "examples"
FILES = sorted(
    file
    for folder in (FOLDER, FOLDER / "tasks", FOLDER / "v1alpha1")
    for file in folder.glob("*.yaml")
    if file.stem != "request-rapid"  # without an image, which v1alpha1 requires
)
OTHERS = {"keda.sh": "ScaledObject", "gateway.networking.k8s.io": "HTTPRoute"}
"""Kinds of projects that are not installed here."""

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_the_api_server_accepts_an_example(kinds: ControlPlane, file: Path, tmp_path: Path) -> None:
    documents = yaml.safe_load_all(file.read_text("utf-8"))
    served = [in_v1alpha1(each) for each in documents if not is_foreign(each)]
    assert served
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(yaml.safe_dump_all(served), "utf-8")
    lines = kinds.kubectl(
        *("apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", str(manifest))
    )
    assert len(served) == len(lines.splitlines())


def test_the_overlay_patches_one_service_of_the_base(kinds: ControlPlane) -> None:
    overlay = FOLDER / "gitops" / "production"
    (graph,) = yaml.safe_load_all(kinds.kubectl("kustomize", str(overlay)))
    (base,) = yaml.safe_load_all((FOLDER / "gitops/base/chat.yaml").read_text("utf-8"))
    base["metadata"]["namespace"] = "inference"
    base["spec"]["components"][1]["replicas"] = 4
    assert base == graph


def is_foreign(document: dict[str, str]) -> bool:
    """Whether a document is of a kind that is not installed here."""
    return OTHERS.get(document["apiVersion"].partition("/")[0]) == document["kind"]
