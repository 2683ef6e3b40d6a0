"""Build the control plane's programs, and what may run beside it, from pinned Go modules.

A cold build takes minutes, so it reports progress, never runs twice at once, and leaves nothing half built
when it is killed: it happens in a `.partial` folder under a lock, and one rename at the end makes the result
visible.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devcluster.layout import cache_folder
from devcluster.locks import held
from devcluster.programs.toolchain import GO_MODULE, Go, find_go
from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError

PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kubectl",
    "kwok",
)
_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_CACHED = "not installed but available in build cache"
_MAX_JOBS = 4  # linking the API server takes more than a gigabyte


@dataclass(frozen=True, slots=True)
class Pinned:
    """A Go module with pinned versions, whose tools are built together.

    `package` is the one whose version counts; empty if the program is the module's own. `named` maps Go's
    name of a program, the last part of its package path, to ours. `tags` are Go's build tags.
    """

    module: str
    title: str
    package: str
    named: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """The folder of go.mod and go.sum."""
        return GO_MODULE.with_name(self.module)

    @property
    def version(self) -> str:
        """The version of `package`, such as `v1.36.3`; empty for our own programs."""
        if not self.package:
            return ""
        text = (self.folder / "go.mod").read_text()
        requirement = re.search(rf"\s{re.escape(self.package)} (v\S+)", text)
        if requirement is None:
            raise ConfigError("go.mod", f"does not require {self.package}")
        return requirement[1]

    @property
    def sources(self) -> list[Path]:
        """The files that determine what is built."""
        own = sorted(self.folder.glob("*.go"))
        return [self.folder / "go.mod", self.folder / "go.sum", *own]


CONTROL_PLANE = Pinned(
    *(GO_MODULE.name, "the control plane", "k8s.io/kubernetes"), named={"server": "etcd"}
)
LEADER_WORKER_SET = Pinned(
    *("gomodule-lws", "the LeaderWorkerSet controller", "sigs.k8s.io/lws"),
    named={"cmd": "leaderworkerset"},
)


def built_folder(pinned: Pinned = CONTROL_PLANE) -> Path:
    """The cache folder of the programs for this module and machine, whether or not it exists.

    It does not depend on the toolchain: a newer Go alone does not justify minutes of building.
    """
    digest = hashlib.sha256()
    for source in pinned.sources:
        digest.update(source.read_bytes())
    digest.update(" ".join((f"{platform.system()} {platform.machine()}", *pinned.tags)).encode())
    return cache_folder() / digest.hexdigest()[:16] / "bin"


def kubernetes_version() -> str:
    """The version of Kubernetes of the control plane."""
    return CONTROL_PLANE.version


def build(progress: ProgressReporter, pinned: Pinned = CONTROL_PLANE) -> Path:
    """The folder with all programs, built if it is not there yet.

    Raises: ConfigError if there is no toolchain or the build fails.
    """
    folder = built_folder(pinned)
    if folder.is_dir():
        return folder
    lock = folder.parent.with_suffix(".lock")
    with held(lock, progress, f"another process that builds {pinned.title}"):
        if not folder.is_dir():
            _build(find_go(progress, pinned.folder), pinned, folder, progress)
    return folder


def _build(go: Go, pinned: Pinned, folder: Path, progress: ProgressReporter) -> None:
    partial = folder.with_name("bin.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        for source in pinned.sources:
            shutil.copy(source, partial)
        total = _download_sources(go, pinned, partial, progress)
        _compile(go, pinned, partial, total, progress)
        for built, name in pinned.named.items():
            (partial / "bin" / built).rename(partial / "bin" / name)
        (partial / "bin").rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _download_sources(go: Go, pinned: Pinned, module: Path, progress: ProgressReporter) -> int:
    """Download the modules, and count the packages that are not in Go's build cache."""
    progress.step(f"downloading the sources of {pinned.title}")
    lines = _go(
        go,
        module,
        "list", "-deps", *_flags(pinned), "-f", "{{.Stale}} {{.StaleReason}}", "tool",
    )  # fmt: skip
    downloaded = missing = 0
    for line in lines:
        if line.startswith("go: downloading"):
            downloaded += 1
            progress.advance(downloaded, 0)
        elif line.startswith("true") and _CACHED not in line:
            missing += 1
    return missing


def _compile(go: Go, pinned: Pinned, module: Path, total: int, progress: ProgressReporter) -> None:
    progress.step(f"building {pinned.title} {pinned.version}".rstrip())
    jobs = max(1, min(_MAX_JOBS, len(os.sched_getaffinity(0))))
    target = f"{module / 'bin'}{os.sep}"
    lines = _go(
        go,
        module,
        *("build", "-v", "-p", str(jobs), *_flags(pinned), "-o", target, "tool"),
    )
    for done, _ in enumerate(lines, 1):
        if done <= total:
            progress.advance(done, total)
        if done == total:
            progress.step("linking the programs")


def _flags(pinned: Pinned) -> tuple[str, ...]:
    tags = (f"-tags={','.join(pinned.tags)}",) if pinned.tags else ()
    return (*_FLAGS, *tags, _linker_flag(pinned))


def _linker_flag(pinned: Pinned) -> str:
    """The linker flag that strips debug tables and sets the version that the API server reports."""
    if pinned.package != CONTROL_PLANE.package:
        return "-ldflags=-s -w"
    version = pinned.version
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamps = [
        f"-X {package}.{name}={value}"
        for package in _VERSION_PACKAGES
        for name, value in values.items()
    ]
    return f"-ldflags=-s -w {' '.join(stamps)}"


def _go(go: Go, module: Path, *arguments: str) -> Iterator[str]:
    """Run a go command and yield the lines that it prints on either stream.

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
