"""The notebooks run from top to bottom in a kernel of Jupyter, on a real API server (`make notebooks`)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cluster.conftest import ControlPlane
from tools.notebooks import store

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb"))
# On socket files: a port that Jupyter finds free may be taken by another test before its kernel binds it.
EXECUTE = """import sys, nbclient, nbformat, traitlets.config
sockets = traitlets.config.Config(KernelManager={"transport": "ipc", "ip": "kernel"})
notebook = nbformat.read(sys.argv[1], 4)
nbclient.execute(notebook, cwd=".", config=sockets, timeout=300, startup_timeout=300)
nbformat.write(notebook, sys.argv[1])"""


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda each: each.stem)
def test_a_notebook_runs(notebook: Path, kinds: ControlPlane, namespace: str, tmp_path: Path) -> None:
    copy = Path(shutil.copy(notebook, tmp_path))
    kubeconfig = tmp_path / "kubeconfig"
    body = yaml.safe_load(kinds.kubeconfig.read_text(encoding="utf-8"))
    body["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig.write_text(yaml.safe_dump(body), encoding="utf-8")
    done = subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", EXECUTE, notebook.name],
        cwd=tmp_path,
        env={**os.environ, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        check=False,
        text=True,
    )
    assert 0 == done.returncode, done.stderr
    if os.environ.get("STORE"):
        store(copy)
    cells = [each for each in json.loads(copy.read_text("utf-8"))["cells"] if "outputs" in each]
    assert all(each["execution_count"] for each in cells)
    if notebook.stem == "first-graph":
        shown = [each["data"] for cell in cells for each in cell["outputs"] if "data" in each]
        drawn = ["".join(each["text/html"]) for each in shown if "text/html" in each]
        assert "<svg " in drawn[0]
        assert "1/1 ready" in drawn[-1]
        for cell in (each for each in cells if "chat.wait()" in "".join(each["source"])):
            assert 1 == [each["output_type"] for each in cell["outputs"]].count("display_data")
