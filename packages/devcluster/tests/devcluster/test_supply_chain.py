"""What is built is what was pinned: uv by hash, the base image by digest, Go programs by their sums."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from devcluster.programs import Go

ROOT = Path(__file__).parents[4]
DIGEST = f"python:3.12-slim@sha256:{'0' * 64}"


def image(sbom: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = ["make", "-o", ".make/bin/uv", "image", "ENGINE=echo", f"SBOM={sbom}", *arguments]
    # `make test` leads here: a make within a make would say which directory it enters.
    own = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    return subprocess.run(  # noqa: S603  # our own recipe
        command, cwd=ROOT, env=own, capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.parametrize("base", ["BASE=", "BASE=python:3.12-slim", "BASE=python:latest"])
def test_an_image_is_not_built_from_a_base_without_a_digest(base: str, tmp_path: Path) -> None:
    done = image(tmp_path / "sbom.json", base)
    assert 0 != done.returncode
    assert "BASE must have a digest" in done.stderr
    assert "" == done.stdout


def test_an_image_comes_with_a_list_of_what_is_in_it(tmp_path: Path) -> None:
    done = image(tmp_path / "sbom.json", f"BASE={DIGEST}")
    assert (0, "") == (done.returncode, done.stderr)
    assert f"build --build-arg BASE={DIGEST} --tag dynamo-operator" in done.stdout
    listed = json.loads((tmp_path / "sbom.json").read_text())
    names = {component["name"] for component in listed["components"]}
    assert {"aiohttp", "msgspec"} <= names
    assert "pytest" not in names


def test_the_image_has_each_program_that_the_charts_start_by_its_path() -> None:
    packages = set(re.findall(r"--package (\S+)", (ROOT / "Containerfile").read_text()))
    projects = (tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text()) for name in packages)
    programs = {program for project in projects for program in project["project"]["scripts"]}
    templates = "".join(file.read_text() for file in (ROOT / "charts").glob("*/templates/**/*.yaml"))
    started = set(re.findall(r"/opt/dynamo-operator/bin/([\w-]+)", templates))
    assert {"dynamoctl"} <= started <= programs


@pytest.mark.parametrize("file", ["Makefile", "Containerfile"])
def test_uv_is_installed_by_its_hashes(file: str) -> None:
    text = (ROOT / file).read_text()
    assert re.search(r"pip install .*--require-hashes", text)
    assert not re.search(r"pip install .*\buv==", text)
    pinned = (ROOT / "requirements" / "uv.txt").read_text()
    assert re.search(r"^uv==[0-9.]+ \\\n +--hash=sha256:[0-9a-f]{64}", pinned, re.MULTILINE)


def test_what_changes_a_go_program_is_not_taken_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (
        ("GOFLAGS", "-toolexec=/evil -mod=mod"),
        ("GOEXPERIMENT", "rangefunc"),
        ("GOCACHEPROG", "/evil"),
        ("GOPROXY", "https://mirror.example.com"),
        ("GONOSUMDB", "*"),
    ):
        monkeypatch.setenv(name, text)
    found = Go(Path("go"), (1, 24)).environment()
    assert "-mod=readonly" == found["GOFLAGS"]
    assert not {"GOEXPERIMENT", "GOCACHEPROG"} & set(found)
    assert ("https://mirror.example.com", "*") == (found["GOPROXY"], found["GONOSUMDB"])
