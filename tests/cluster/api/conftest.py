"""A judge of documents: the API server with our kinds."""

import pytest

from cluster.api.judge import Judge
from cluster.conftest import ControlPlane


@pytest.fixture(scope="session")
def judge(kinds: ControlPlane) -> Judge:
    return Judge(kinds.world("default"))
