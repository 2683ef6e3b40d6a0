"""The operator's flags in the tests of graphs. They need no kinds of other projects."""

import pytest


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """It may run planners."""
    return ("--planner-cluster-role-name=view",)
