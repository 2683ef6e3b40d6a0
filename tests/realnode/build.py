"""Build an image from a Containerfile, without a container engine and without a registry.

The stages before the last are folders in which commands run as in a container. The last stage adds what it
copies to the base, one layer for each COPY. Commands need this machine's network settings, its certificates
and a cache, none of which may get into the image. So they are mounted in a mount namespace that ends with the
command.
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from devcluster.layout import cache_folder, held
from devcluster.processes import completed, last_line
from devcluster.progress import ProgressReporter
from kube_runtime.errors import ConfigError
from realnode import oci
from realnode.machine import PATH
from realnode.oci import (
    BuildStage,
    Copy,
    IgnoreRules,
    Instruction,
    Layer,
    Settings,
    TarEntry,
    architecture,
    existing_layer,
    folder_entries,
    write_image,
    write_layer,
)

BASE = "localhost/debian-python:12"
"""The name of the base in FROM (see `--build-arg BASE`): a small Debian with Python, built with Debian's own
tool instead of pulled from a registry, as `python:*-slim` would be."""

_BASE_SUITE = "bookworm"
_BASE_PACKAGES = ("ca-certificates", "curl", "libgomp1", "python3", "python3-venv")
_BASE_EXCLUDED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
_BASE_TIME = "315532800"  # of all files, for reproducible bytes
_MOUNTED = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs")
_PASSED_PREFIXES = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_BUNDLE")
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_RUN_SCRIPT = """
set -eu
root=$1 downloads=$2 folder=$3 command=$4
shift 4
for shared in {shared}; do
  [ -d "$shared" ] || touch "$root$shared"
  mount --bind "$shared" "$root$shared"
done
mkdir -p "$root/root/.cache" "$root$folder"
mount --bind "$downloads" "$root/root/.cache"
mount -t proc proc "$root/proc"
exec chroot "$root" /usr/bin/env -i "$@" /bin/sh -c 'cd "$0" && eval "$1"' "$folder" "$command"
"""


@dataclass(slots=True)
class _StageState:
    """A stage while it is built."""

    root: Path
    arguments: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"

    @property
    def variables(self) -> dict[str, str]:
        """The variables that an instruction may use."""
        return self.arguments | self.environment


@dataclass(frozen=True, slots=True)
class ImageBuild:
    """The inputs of an image: a folder with a Containerfile, and arguments for it."""

    source: Path
    name: str
    arguments: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def stages(self) -> list[BuildStage]:
        """The stages of the Containerfile.

        Raises: ConfigError.
        """
        text = (self.source / "Containerfile").read_text()
        return oci.parse(text, {"BASE": BASE, **self.arguments})

    def digest(self, base: Layer) -> str:
        """A digest of the inputs, which identifies an image before it is built."""
        parts: list[object] = [self.name, base.digest, dict(self.arguments), dict(self.labels)]
        for stage in self.stages:
            parts.append(
                (
                    stage.base,
                    [(instruction.keyword, instruction.text) for instruction in stage.instructions],
                )
            )
            for instruction in stage.instructions:
                copied = oci.copy(instruction, self.arguments) if instruction.keyword == "COPY" else None
                if copied and not copied.stage:
                    parts += [_fingerprint(entry) for entry in self._entries(copied, "", {})]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def write(self, file: Path, progress: ProgressReporter) -> str:
        """Build the image and write it as an OCI archive; return its digest.

        Raises: ConfigError.
        """
        if os.geteuid() != 0:
            raise ConfigError("an image", "needs root: its commands run in their own root folder")
        arguments = {"BASE": BASE, **self.arguments}
        *before, last = self.stages
        base = base_layer(progress)
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="image-", dir=file.parent) as place:
            folder = Path(place)
            roots: dict[str, Path] = {}
            for number, stage in enumerate(before):
                root = folder / f"stage-{number}"
                roots[stage.name or str(number)] = root
                self._run_stage(stage, root, base, roots, arguments, progress)
            progress.step(f"writing {self.name}")
            layers, settings = self._last_stage(last, folder, roots)
            return write_image(file, self.name, [base, *layers], settings, architecture=architecture())

    def _run_stage(
        self,
        stage: BuildStage,
        root: Path,
        base: Layer,
        roots: Mapping[str, Path],
        arguments: Mapping[str, str],
        progress: ProgressReporter,
    ) -> None:
        if stage.base in roots:
            shutil.copytree(roots[stage.base], root, symlinks=True)
        else:
            _require_base(stage)
            root.mkdir()
            _checked(["tar", "--extract", f"--file={base.file}", f"--directory={root}"], "base")
        state = _StageState(root)
        for instruction in stage.instructions:
            match instruction.keyword:
                case "ARG":
                    name, value = oci.argument(instruction, arguments)
                    state.arguments[name] = value
                case "ENV":
                    state.environment |= oci.pairs(instruction, state.variables)
                case "WORKDIR":
                    state.folder = str(oci.place(instruction.text, state.folder))
                    inside = state.root / state.folder.lstrip("/")
                    inside.mkdir(parents=True, exist_ok=True)
                case "COPY":
                    copied = oci.copy(instruction, state.variables)
                    self._copy_into(state, copied, roots)
                case "RUN":
                    progress.step(f"{self.name}: {instruction.text[:60]}")
                    _run(state, instruction)
                case _:
                    raise instruction.error("belongs in the last stage")

    def _copy_into(self, state: _StageState, copied: Copy, roots: Mapping[str, Path]) -> None:
        def is_folder(place: PurePosixPath) -> bool:
            return (state.root / place.relative_to("/")).is_dir()

        for entry in self._entries(copied, state.folder, roots, is_folder):
            target = state.root / entry.place.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if entry.source.is_dir() and not entry.source.is_symlink():
                target.mkdir(exist_ok=True)
            else:
                shutil.copy2(entry.source, target, follow_symlinks=False)

    def _entries(
        self,
        copied: Copy,
        folder: str,
        roots: Mapping[str, Path],
        is_folder: Callable[[PurePosixPath], bool] = lambda _: False,
    ) -> Iterator[TarEntry]:
        """The files of a COPY: a folder's content, or a file, which keeps its name in a target folder."""
        origin = roots[copied.stage] if copied.stage else self.source
        ignored = IgnoreRules.of(self.source) if not copied.stage else IgnoreRules(())
        target = oci.place(copied.target, folder)
        is_into_folder = copied.target.endswith(("/", ".")) or len(copied.sources) > 1 or is_folder(target)
        for source in copied.sources:
            path = origin / source.lstrip("/")
            if not path.exists():
                raise ConfigError("Containerfile", f"COPY {source}: no such file")
            if not path.is_dir():
                yield TarEntry(target / path.name if is_into_folder else target, path)
                continue
            for entry in folder_entries(path, target):
                relative = PurePosixPath(entry.source.relative_to(origin))
                if not ignored.ignores(relative):
                    yield entry

    def _last_stage(
        self, stage: BuildStage, folder: Path, roots: Mapping[str, Path]
    ) -> tuple[list[Layer], Settings]:
        _require_base(stage)
        environment, labels, layers = {"PATH": PATH}, dict(self.labels), list[Layer]()
        entrypoint: tuple[str, ...] = ()
        command: tuple[str, ...] = ()
        user = place = ""
        ports: list[str] = []
        for number, instruction in enumerate(stage.instructions):
            match instruction.keyword:
                case "ENV":
                    environment |= oci.pairs(instruction, environment)
                case "LABEL":
                    labels |= oci.pairs(instruction, environment)
                case "COPY":
                    copied = oci.copy(instruction, environment)
                    entries = self._entries(copied, place, roots)
                    layers.append(write_layer(folder / f"layer-{number}.tar", entries))
                case "WORKDIR":
                    place = str(oci.place(instruction.text, place))
                case "USER":
                    user = instruction.text
                case "EXPOSE":
                    ports += instruction.text.split()
                case "ENTRYPOINT":
                    entrypoint = oci.command(instruction)
                case "CMD":
                    command = oci.command(instruction)
                case _:
                    raise instruction.error("does not belong in the last stage")
        return layers, Settings(entrypoint, command, environment, user, place, labels, ports)


def _fingerprint(entry: TarEntry) -> tuple[str, int, str]:
    """Path in the image, mode and content of a copied file."""
    mode = entry.source.lstat().st_mode
    if entry.source.is_symlink() or not entry.source.is_file():
        return (
            str(entry.place),
            mode,
            str(entry.source.readlink()) if entry.source.is_symlink() else "",
        )
    return str(entry.place), mode, hashlib.sha256(entry.source.read_bytes()).hexdigest()


def built_image(build: ImageBuild, progress: ProgressReporter) -> Path:
    """The archive of an image in the user's cache, built if its inputs have changed.

    Keeps only the newest image of each name.

    Raises: ConfigError.
    """
    folder = cache_folder() / "images"
    title = re.sub(r"[^A-Za-z0-9.]+", "-", build.name)
    lock = folder / f"{title}.lock"
    with held(lock, progress, f"another process that builds {build.name}"):
        file = folder / f"{title}-{build.digest(base_layer(progress))[:16]}.tar"
        if not file.exists():
            for old in folder.glob(f"{title}-*.tar"):
                old.unlink()
            build.write(file, progress)
    return file


def base_layer(progress: ProgressReporter) -> Layer:
    """The base, built on first use from the Debian packages of that day.

    Raises: ConfigError if it cannot be built.
    """
    options = [
        "mmdebstrap",
        "--variant=minbase",
        f"--include={','.join(_BASE_PACKAGES)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _BASE_EXCLUDED),
        _BASE_SUITE,
    ]
    digest = hashlib.sha256(json.dumps(options).encode()).hexdigest()[:16]
    folder = cache_folder() / "images"
    file = folder / f"base-{digest}.tar"
    with held(folder / "base.lock", progress, "another process that builds the base of images"):
        if not file.exists():
            progress.step("building the base of images from Debian packages")
            partial = file.with_suffix(".partial.tar")
            environment = {**os.environ, "PATH": PATH, "SOURCE_DATE_EPOCH": _BASE_TIME}
            done = completed([*options, str(partial)], environment)
            if done.returncode:
                partial.unlink(missing_ok=True)
                raise ConfigError("mmdebstrap", last_line(done.stderr, f"exit code {done.returncode}"))
            partial.rename(file)
    return existing_layer(file)


def _require_base(stage: BuildStage) -> None:
    if stage.base != BASE:
        raise ConfigError("Containerfile", f"FROM {stage.base}: only {BASE} is available without a registry")


def _run(state: _StageState, instruction: Instruction) -> None:
    downloads = cache_folder() / "images" / "downloads"
    downloads.mkdir(parents=True, exist_ok=True)
    passed = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(_PASSED_PREFIXES) or name in _PROXIES
    }
    environment = {"HOME": "/root", **passed, **state.variables}
    with suppress(KeyError):
        del environment["PIP_FIND_LINKS"]  # a folder of this machine, outside of the stage
    script = _RUN_SCRIPT.format(shared=" ".join(_MOUNTED))
    isolated = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation=private")
    _checked(
        [
            *(*isolated, "/bin/sh", "-c", script, "sh"),
            *(str(state.root), str(downloads), state.folder, instruction.text),
            *(f"{name}={value}" for name, value in environment.items()),
        ],
        f"Containerfile:{instruction.line}",
    )


def _checked(command: list[str], subject: str) -> None:
    done = completed(command, {"PATH": PATH})
    if done.returncode:
        last_lines = (done.stderr or done.stdout).strip().splitlines()[-3:]
        raise ConfigError(subject, " / ".join(last_lines) or f"exit code {done.returncode}")
