"""What the users have: Helm, and one playground for all. A fixture, as the first build of Helm takes long."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.charts.conftest import offline

__all__ = ["offline", "state"]


@pytest.fixture(scope="package", autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder of instances, in which there are none yet. The first user starts the playground of all."""
    programs = Path(sys.executable).parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        try:
            yield
        finally:
            subprocess.run([programs / "dynamoctl", "dev", "down", "--all"], check=True)  # noqa: S603  ours
