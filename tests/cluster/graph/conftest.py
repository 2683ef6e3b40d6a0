"""The operator's flags in the tests of graphs, and a user. They need no kinds of other projects."""

import pytest

from cluster.conftest import ControlPlane
from cluster.person import Person


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    return ("--planner-cluster-role-name=view",)


@pytest.fixture
def admin(kinds: ControlPlane, namespace: str) -> Person:
    return Person(kinds.kubeconfig, namespace)
