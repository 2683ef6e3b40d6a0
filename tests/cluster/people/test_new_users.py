"""Three new users do what the README says, each up to a graph that is ready.

Their commands are read from the pages. What differs is named here: where a program lies, and that on
simulated nodes the operator's pod runs nothing, so the operator runs beside the cluster as its Deployment
says, without webhooks. `pytest -rP` prints how long each took; docs/local-control-plane.md has a table.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.charts.releases import BESIDE, running
from cluster.conftest import ControlPlane
from devcluster.instance import Instance
from devcluster.programs import Helm

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[3]
PROGRAMS = Path(sys.executable).parent


def section(page: str, title: str) -> str:
    """The text of a page below a heading, up to the next one of this rank."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def shell(script: str, **environment: str) -> str:
    """What a script prints that a user runs in a clone; an error ends it."""
    done = subprocess.run(  # noqa: S603  the commands of our own pages
        ["/bin/sh", "-eu", "-c", script.replace(".venv/bin/", f"{PROGRAMS}/")],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        check=False,
        text=True,
    )
    assert 0 == done.returncode, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@contextmanager
def timed(user: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"{user}: a ready graph after {time.monotonic() - began:.0f} s")  # noqa: T201  for -rP


def playground() -> str:
    """The README's commands that start a playground and have the shell use it."""
    text = section("README.md", "The demo: a real control plane, simulated GPUs")
    (up,) = re.findall(r"^(dynamoctl dev up)\b", text, re.MULTILINE)
    (use,) = re.findall(r"`(eval .+?)`", text)
    return f"{up}\n{use}\n"


def test_an_ml_engineer_from_a_clone_to_a_graph() -> None:
    page = (ROOT / "docs/local-control-plane.md").read_text(encoding="utf-8")
    (applied,) = re.findall(r"^\$ (kubectl apply -f examples/\S+)", page, re.MULTILINE)
    name = Path(applied).stem
    waited = f"kubectl wait --for=condition=Ready dgd/{name} --timeout=8m"
    with timed("ML engineer"):
        shell(f"{playground()}{applied}\n{waited}")
    assert "has been ready since" in shell(f"{playground()}dynamoctl why {name}")


def test_a_data_scientist_from_ten_lines_to_a_graph() -> None:
    (program,) = blocks(section("README.md", "In Python"), "python")
    with timed("data scientist"):
        said = shell(f"{playground()}python -W error - <<'END'\n{program}END")
    assert "<Graph chat: 2 services, 2 GPUs, ready>" in said


def test_a_platform_engineer_from_the_chart_to_a_graph(offline: Helm, tmp_path: Path) -> None:
    install, create = blocks(section("README.md", "On a cluster"), "sh")
    use = 'eval "$(dynamoctl dev env cluster)"\n'
    path = f"{offline.program.parent}:{os.environ['PATH']}"
    user = {"HF_TOKEN": "a token", "HOME": str(tmp_path), "PATH": path}
    with timed("platform engineer"):
        shell("dynamoctl dev up cluster --no-operator")
        shell(f"{use}{install.rstrip()} {BESIDE}", **user)
        plane = ControlPlane(Instance("cluster"))
        with running(plane, plane.world("dynamo-system"), tmp_path / "operator.log"):
            shell(f"{use}{create}", **user)
