"""Builds the control plane's programs from the pinned Go module.

A cold build takes minutes, so it must show that it moves, must not run twice at once, and must leave
nothing half made when it is killed: everything happens in a `.partial` folder under a lock, and one
rename at the end makes the result visible.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from dynamo_operator.controlplane.folders import cache_folder
from dynamo_operator.controlplane.locks import held
from dynamo_operator.controlplane.progress import Progress
from dynamo_operator.controlplane.toolchain import GO_MODULE, Go, find_go
from dynamo_operator.kube.errors import ConfigError

PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kwok",
)
_BUILT_AS = {"server": "etcd"}  # named by Go after the last part of its package path
_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_READY_MADE = "not installed but available in build cache"
_PARALLEL_MOST = 4  # linking the API server takes more than a gigabyte


def built_folder() -> Path:
    """The cache folder of the programs for this module and machine, whether or not it exists.

    Not of the toolchain: a newer Go alone is no reason to build for minutes.
    """
    digest = hashlib.sha256()
    for part in ("go.mod", "go.sum"):
        digest.update((GO_MODULE / part).read_bytes())
    digest.update(f"{platform.system()} {platform.machine()}".encode())
    return cache_folder() / digest.hexdigest()[:16] / "bin"


def kubernetes_version() -> str:
    """The version that the pinned module builds, such as `v1.36.3`."""
    found = re.search(r"\sk8s\.io/kubernetes (v\S+)", (GO_MODULE / "go.mod").read_text())
    if found is None:
        raise ConfigError("go.mod", "does not require k8s.io/kubernetes")
    return found[1]


def build(progress: Progress) -> Path:
    """The folder with all programs, built if it is not there yet.

    Raises: ConfigError if there is no toolchain or the build fails.
    """
    folder = built_folder()
    if folder.is_dir():
        return folder
    with held(
        folder.parent.with_suffix(".lock"),
        waiting=lambda: progress.step("waiting for another process that builds the control plane"),
    ):
        if not folder.is_dir():
            _build(find_go(progress), folder, progress)
    return folder


def _build(go: Go, folder: Path, progress: Progress) -> None:
    partial = folder.with_name("bin.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for part in ("go.mod", "go.sum"):
            shutil.copy(GO_MODULE / part, partial)
        total = _to_compile(go, partial, progress)
        _compile(go, partial, total, progress)
        for built, name in _BUILT_AS.items():
            (partial / "bin" / built).rename(partial / "bin" / name)
        (partial / "bin").rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _to_compile(go: Go, module: Path, progress: Progress) -> int:
    """The number of packages that are not in Go's own cache. Downloads the modules on the way."""
    progress.step("downloading the control plane's sources")
    lines = _go(
        go,
        module,
        "list", "-deps", *_FLAGS, _stamp(), "-f", "{{.Stale}} {{.StaleReason}}", "tool",
    )  # fmt: skip
    downloaded = missing = 0
    for line in lines:
        if line.startswith("go: downloading"):
            downloaded += 1
            progress.advance(downloaded, 0)
        elif line.startswith("true") and _READY_MADE not in line:
            missing += 1
    return missing


def _compile(go: Go, module: Path, total: int, progress: Progress) -> None:
    progress.step(f"building the control plane {kubernetes_version()}")
    parallel = max(1, min(_PARALLEL_MOST, len(os.sched_getaffinity(0))))
    target = f"{module / 'bin'}{os.sep}"
    lines = _go(
        go, module, "build", "-v", "-p", str(parallel), *_FLAGS, _stamp(), "-o", target, "tool"
    )
    for done, _ in enumerate(lines, 1):
        if done <= total:
            progress.advance(done, total)
        if done == total:
            progress.step("linking the programs")


def _stamp() -> str:
    """The linker flag that leaves out debug tables and writes in the version that clients see."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamps = [
        f"-X {package}.{name}={value}"
        for package in _VERSION_PACKAGES
        for name, value in values.items()
    ]
    return f"-ldflags=-s -w {' '.join(stamps)}"


def _go(go: Go, module: Path, *arguments: str) -> Iterator[str]:
    """The lines that a go command prints on either stream, as they come.

    Raises: ConfigError with its last line if it fails.
    """
    with subprocess.Popen(  # noqa: S603 - the toolchain found or installed above
        [go.program, *arguments],
        cwd=module,
        env=go.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        last = ""
        for line in process.stdout or ():
            last = line.strip() or last
            yield line
    if process.returncode:
        raise ConfigError(f"go {arguments[0]}", last)
