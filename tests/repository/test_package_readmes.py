"""The example in each package's README runs, and the package ships the license."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
NAMES = [path.name for path in PACKAGES]


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_the_example_runs(package: Path, tmp_path: Path) -> None:
    text = (package / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    done = subprocess.run(  # noqa: S603  # our own page
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("package", PACKAGES, ids=NAMES)
def test_the_package_ships_the_license(package: Path) -> None:
    assert (ROOT / "LICENSE").read_bytes() == (package / "LICENSE").read_bytes()
