"""Images, built by buildah in a store of their own: without a daemon and without a registry. Needs root.

Commands get this machine's certificates, mounted, so that none gets into the image.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.layout import cache_folder, held
from devcluster.processes import completed, last_line
from devcluster.progress import SILENT, ProgressReporter
from kube_runtime.errors import ConfigError
from realnode.machine import PATH

_DEBIAN = (
    *("mmdebstrap", "--variant=minbase"),
    "--include=ca-certificates,curl,libgomp1,python3,python3-venv",
    *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")),
    "bookworm",
)
BASE = f"localhost/debian-python:{hashlib.sha256(' '.join(_DEBIAN).encode()).hexdigest()[:12]}"
"""The base in FROM (see `--build-arg BASE`): a small Debian with Python, built with Debian's own tool instead
of pulled from a registry, as `python:*-slim` would be."""

_CERTIFICATES = "/etc/ssl/certs"
_TIME = "315532800"  # of all files and images, for reproducible bytes


def build_image(
    source: Path, name: str, progress: ProgressReporter, *, text: str = "", base: str = BASE
) -> None:
    """Build the Containerfile of a folder, or `text`; what has not changed is not built again.

    Raises: ConfigError.
    """
    if base == BASE:
        build_base(progress)
    progress.step(f"building {name}")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "Containerfile")
        file.write_text(text or (source / file.name).read_text())
        mounts = (f"{_CERTIFICATES}:{_CERTIFICATES}:ro", f"{Path(__file__).with_name('uv')}:/etc/uv:ro")
        _buildah(
            *("build", "--layers", "--isolation=chroot", f"--timestamp={_TIME}", f"--build-arg=BASE={base}"),
            *(f"--volume={mount}" for mount in mounts),
            *(f"--tag={name}", f"--file={file}", str(source)),
        )


def build_program_image(name: str, program: Path, setting: str = "") -> None:
    """Build the image of one static program as `/<its name>`, by default its entry point."""
    start = setting or f'ENTRYPOINT ["/{program.name}"]'
    text = f"FROM scratch\nCOPY {program.name} /{program.name}\n{start}\n"
    build_image(program.parent, name, SILENT, text=text, base="scratch")


def save_image(name: str, file: Path, target: str = "") -> str:
    """Write a built image as an OCI archive, under the name `target` if given; return its digest."""
    with tempfile.NamedTemporaryFile("r") as digest:
        file.unlink(missing_ok=True)
        place = f"oci-archive:{file}:{target or name}"
        _buildah("push", "--quiet", f"--digestfile={digest.name}", name, place)
        return digest.read()


@contextmanager
def saved_image(name: str, target: str = "") -> Iterator[Path]:
    """The OCI archive of an image that was built, meanwhile."""
    with tempfile.TemporaryDirectory(prefix="image-", dir=_store()) as folder:
        file = Path(folder, "image.tar")
        save_image(name, file, target)
        yield file


def build_base(progress: ProgressReporter) -> None:
    """Build the base on first use, from the Debian packages of that day."""
    with held(_store() / "base.lock", progress, "another process that builds the base of images"):
        if BASE in _buildah("images", "--format={{.Name}}:{{.Tag}}").split():
            return
        progress.step("building the base of images from Debian packages")
        with tempfile.TemporaryDirectory(dir=_store()) as folder:
            environment = {**os.environ, "PATH": PATH, "SOURCE_DATE_EPOCH": _TIME}
            _checked([*_DEBIAN, f"{folder}/base.tar"], environment)
            build_image(Path(folder), BASE, progress, text="FROM scratch\nADD base.tar /\n", base="scratch")


def _store() -> Path:
    folder = cache_folder() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _buildah(*arguments: str) -> str:
    store = _store()
    options = ("--storage-driver=overlay", "--storage-opt=overlay.skip_mount_home=true")
    places = (f"--root={store / 'store'}", f"--runroot={store / 'run'}")
    return _checked(["buildah", *options, *places, *arguments], dict(os.environ))


def _checked(command: list[str], environment: dict[str, str]) -> str:
    done = completed(command, environment)
    if done.returncode:
        raise ConfigError(command[0], last_line(done.stderr, f"exit code {done.returncode}"))
    return done.stdout
