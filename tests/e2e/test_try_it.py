"""A real API server takes the manifests of docs/try-it.md."""

import re

import pytest

from e2e.cluster import SOURCES, RealCluster

PAGE = SOURCES / "docs" / "try-it.md"
MANIFESTS = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
pytestmark = pytest.mark.cluster


def test_the_page_has_manifests() -> None:
    assert len(MANIFESTS) >= 2


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_of_the_page_is_accepted(cluster: RealCluster, manifest: str) -> None:
    answer = cluster.kubectl("apply", "--dry-run=server", "--filename=-", input=manifest)
    assert [] == [line for line in answer.splitlines() if "(server dry run)" not in line]
