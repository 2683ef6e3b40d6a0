"""Download prebuilt programs, if each of them has a checksum in `prebuilt.toml`.

This is tried first, because a build takes minutes. After any failure, such as no response within two seconds,
a stalled download or a wrong checksum, the programs are built. The next attempt continues a partial download.
"""

import hashlib
import os
import platform
import shutil
import tarfile
import tomllib
import urllib.error
import urllib.request
from collections.abc import Collection, Sequence
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from devcluster.layout import cache_folder
from devcluster.locks import held
from devcluster.progress import ProgressReporter
from kube_runtime.errors import OperatorError

TABLE = Path(__file__).parents[1] / "prebuilt.toml"
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
    return msgspec.convert(by_machine.get(machine, ()), tuple[Pin, ...])


def fetch(names: Collection[str], progress: ProgressReporter, table: Path = TABLE) -> Path | None:
    """The folder with these programs, or None to build them; `progress` reports a failure."""
    platform_pins = pins(table)
    if os.environ.get(MIRROR) == "off" or not set(names) <= {
        n for p in platform_pins for n in p.programs
    }:
        return None
    digest = hashlib.sha256("".join(pin.sha512 for pin in platform_pins).encode()).hexdigest()[:16]
    folder = cache_folder() / f"prebuilt-{digest}"
    with held(folder.with_suffix(".lock"), progress, "another process that downloads programs"):
        try:
            return (
                folder / "bin"
                if folder.is_dir()
                else _download_all(platform_pins, folder, progress)
            )
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
    """Download a file and verify its checksum.

    Raises:
        DownloadError: the checksum is wrong; the file is removed.
        OSError: no response, or every attempt failed.
    """
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
        raise DownloadError(
            f"{pin.location} has the SHA-512 {sha512[:16]}…, not {pin.sha512[:16]}…"
        )
    return file


def _continue(url: str, file: Path, size: int, progress: ProgressReporter) -> None:
    """Download the missing part of a file, or all of it if the server does not support ranges."""
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
        _install(file.read_bytes(), folder / name)
        return
    with tarfile.open(file) as archive:
        # By the last part of their names: paths in an archive must not decide where files go.
        members = {
            Path(member.name).name: member for member in archive.getmembers() if member.isfile()
        }
        for name in pin.programs:
            content = archive.extractfile(members[name]) if name in members else None
            if content is None:
                raise DownloadError(f"{pin.url} has no {name}")
            _install(content.read(), folder / name)


def _install(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    path.chmod(0o755)
