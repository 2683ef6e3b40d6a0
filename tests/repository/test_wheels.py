"""The built wheels of the library in an empty environment, with what they declare to need and nothing else.

Third-party packages are copied from the environment of the tests: the test needs no network.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("dynamo-graphs", "dynamo-operator", "kube-runtime")
UV = ROOT / ".make/bin/uv"
NAME = re.compile(r"[\w.-]+")


def needed(name: str) -> Iterator[Distribution]:
    """The third-party packages that a package declares, and those that they declare, without extras."""
    for line in distribution(name).requires or ():
        requirement, _, marker = line.partition(";")
        found = NAME.match(requirement)
        if marker.strip() or found is None:
            continue  # of an extra, or of another version of Python
        if found[0] not in OURS:
            yield distribution(found[0])
        yield from needed(found[0])


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    for package in OURS:
        subprocess.run(  # noqa: S603  # our own tool
            [UV, "build", "--quiet", "--offline", "--wheel", f"--package={package}", f"--out-dir={folder}"],
            check=True,
            cwd=ROOT,
        )
    subprocess.run(  # noqa: S603  # our own interpreter
        [sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True
    )
    (packages,) = (folder / "venv/lib").glob("python3*/site-packages")
    for wheel in folder.glob("*.whl"):
        with ZipFile(wheel) as archive:  # a wheel without data or scripts is installed so
            assert not [each for each in archive.namelist() if ".data/" in each]
            archive.extractall(packages)
    for each in {found.name: found for name in OURS for found in needed(name)}.values():
        for file in each.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(Path(str(file.locate())), target)
    return folder / "venv/bin/python"


def run(python: Path, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own interpreter
        [python, "-I", "-W", "error", "-c", code], capture_output=True, check=False, text=True, cwd=folder
    )


def test_the_library_runs_with_what_its_wheels_declare(python: Path, tmp_path: Path) -> None:
    page = (ROOT / "packages/dynamo-graphs/README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = run(python, code, tmp_path)
    assert (0, "", "") == (done.returncode, done.stdout, done.stderr)


def test_nothing_else_is_in_the_environment(python: Path, tmp_path: Path) -> None:
    for name in ("aiohttp", "dynamoctl", "dynamo_legacy", "kubernetes", "pytest"):
        done = run(python, f"import {name}", tmp_path)
        assert "ModuleNotFoundError" in done.stderr


def test_type_checkers_may_read_the_types(python: Path, tmp_path: Path) -> None:
    code = "import dynamo_graphs as a, kube_runtime as b; print(a.__path__[0], b.__path__[0])"
    for folder in run(python, code, tmp_path).stdout.split():
        assert (Path(folder) / "py.typed").is_file()
