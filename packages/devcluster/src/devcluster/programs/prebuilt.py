"""Fetches programs that others have built, if each of them has a checksum in `prebuilt.toml`.

Sources take minutes to build. So this comes first, and any trouble ends in a build: no answer within two
seconds, a download that stops, a wrong checksum. What has been downloaded of a file stays, and the next
attempt continues there.
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
"""Environment variable with the URL that replaces scheme and host; `off` means: build from source."""

_ANSWER_SECONDS = 2.0
_SILENCE_SECONDS = 20.0
_ATTEMPTS = 3
_CHUNK = 1 << 20


class NotFetched(OperatorError):
    """A program could not be downloaded, or is not what it should be."""


class Pin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file to download: one program, or a `.tar.gz` with several."""

    url: str
    sha512: str
    programs: tuple[str, ...]

    @property
    def location(self) -> str:
        """Where to download it: the URL, or the same path at the mirror."""
        mirror = os.environ.get(MIRROR, "")
        return f"{mirror.rstrip('/')}{urlsplit(self.url).path}" if mirror else self.url


def pins(table: Path = TABLE) -> tuple[Pin, ...]:
    """The files for this machine."""
    machine = f"{platform.system()}-{platform.machine()}".lower()
    by_machine = tomllib.loads(table.read_text(encoding="utf-8"))
    return msgspec.convert(by_machine.get(machine, ()), tuple[Pin, ...])


def fetch(names: Collection[str], progress: ProgressReporter, table: Path = TABLE) -> Path | None:
    """The folder with these programs. None means: build them; `progress` says why, if there was trouble."""
    chosen = pins(table)
    if os.environ.get(MIRROR) == "off" or not set(names) <= {n for p in chosen for n in p.programs}:
        return None
    digest = hashlib.sha256("".join(pin.sha512 for pin in chosen).encode()).hexdigest()[:16]
    folder = cache_folder() / f"prebuilt-{digest}"
    with held(folder.with_suffix(".lock"), progress, "another process that downloads programs"):
        try:
            return folder / "bin" if folder.is_dir() else _fetched(chosen, folder, progress)
        except (OperatorError, OSError, HTTPException, tarfile.TarError) as error:
            progress.step(f"no prebuilt programs: {error}; building from source")
            return None


def _fetched(chosen: Sequence[Pin], folder: Path, progress: ProgressReporter) -> Path:
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    (partial / "bin").mkdir(parents=True)
    files = [_downloaded(pin, progress) for pin in chosen]
    for pin, file in zip(chosen, files, strict=True):
        _unpack(pin, file, partial / "bin")
    partial.rename(folder)
    for file in files:
        file.unlink()
    return folder / "bin"


def _downloaded(pin: Pin, progress: ProgressReporter) -> Path:
    """The whole file, its checksum right.

    Raises:
        NotFetched: it is another file; it is removed.
        OSError: no answer, or the connection ended each time.
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
        raise NotFetched(f"{pin.location} ended after {file.stat().st_size} of {size} bytes")
    with file.open("rb") as content:
        sha512 = hashlib.file_digest(content, "sha512").hexdigest()
    if sha512 != pin.sha512:
        file.unlink()
        raise NotFetched(f"{pin.location} has the SHA-512 {sha512[:16]}…, not {pin.sha512[:16]}…")
    return file


def _continue(url: str, file: Path, size: int, progress: ProgressReporter) -> None:
    """Download what is missing of a file; all of it where the server has no parts."""
    done = file.stat().st_size if file.exists() else 0
    if size and done >= size:
        return
    headers = {"Range": f"bytes={done}-"} if done else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310  # a pinned checksum
    with urllib.request.urlopen(request, timeout=_SILENCE_SECONDS) as answer:  # noqa: S310
        is_rest = answer.status == HTTPStatus.PARTIAL_CONTENT
        done = done if is_rest else 0
        with file.open("ab" if is_rest else "wb") as output:
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
        # By the last part of their names: nothing is written where an archive says.
        members = {
            Path(member.name).name: member for member in archive.getmembers() if member.isfile()
        }
        for name in pin.programs:
            content = archive.extractfile(members[name]) if name in members else None
            if content is None:
                raise NotFetched(f"{pin.url} has no {name}")
            _install(content.read(), folder / name)


def _install(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    path.chmod(0o755)
