"""`dynamo-operator fetch`: fetch the archive of a build, and unpack it into a folder. Builds run it first.

The variable `SOURCE` has the source as JSON. The operator reads the termination message: the configuration
of the graph, or the error in one line. Neither contains credentials.
"""

import asyncio
import base64
import errno
import gzip
import hashlib
import http.client
import io
import math
import os
import re
import shutil
import sys
import tarfile
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import closing
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, NoReturn, Self
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec

from dynamo_legacy.api import HttpSource, OciSource, PvcSource, S3Source, Source
from dynamo_legacy.build.plan import COMPRESSED
from dynamo_legacy.build.source import (
    CREDENTIALS,
    HEADERS,
    MOUNTED,
    STORE_USER,
    TOKEN_HEADER,
    TOKEN_KEY,
    parse_reference,
    store_url,
    store_user,
)
from dynamo_legacy.names import GRAPH_CONFIG_KEY
from dynamo_legacy.registry import Registry, RegistryError, login_of, registry_session
from dynamo_legacy.render import MOST_BYTES
from dynamo_legacy.settings import LegacySettings
from dynamo_operator.documents import documents
from kube_runtime.errors import ConfigError, ConfigErrors
from kube_runtime.types.meta import cut, from_json

MOST_ARCHIVE_BYTES: Final = 512 * 1024 * 1024
"""Most bytes of an archive, compressed and decompressed."""
MOST_MEMBERS: Final = 100_000
_GZIP = b"\x1f\x8b"
_MOST_OF_HEADER: Final = 16 * 1024
"""Most bytes of an extended header, which `tarfile` reads into memory as a whole: twice two paths of 4,096
bytes, the limit of Linux. Before 3.11.10, Python needs quadratic time for it (CVE-2024-6232)."""
_LONG_HEADERS: Final = frozenset(
    (
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    )
)


class ArchiveError(Exception):
    """The archive is invalid or too large; the message says why."""


class BoundedHeader(tarfile.TarInfo):
    """A header of limited size. Raises: ArchiveError if it is too large, when `tarfile` reads it."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """The header in a block of the archive."""
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _LONG_HEADERS and header.size > _MOST_OF_HEADER):
            raise ArchiveError(f"a header of {header.size} bytes")
        return header


class _WholeFile(BoundedHeader):
    """A header that refuses sparse files: their map is kept in memory, and may be as large as the archive."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError(f"{header.name[:100]} is a sparse file")
        return header

    def _proc_gnusparse_10(self, *_: object) -> NoReturn:
        """Called by `tarfile` to read the map of a sparse file in POSIX format."""
        raise ArchiveError(f"{self.name[:100]} is a sparse file")


# The archive is untrusted. It is read once, as a stream, and never written to disk.
def config_in(archive: io.BufferedIOBase, deadline: float = math.inf) -> str:
    """Read the first `bento.yaml` of an archive, until that time of the monotonic clock.

    Raises:
        ArchiveError: the archive is invalid, too large or late, or has no such file.
        Exception: what reading raises.
    """
    source = io.BufferedReader(_Bounded(archive, deadline))
    is_compressed = source.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
    stream = gzip.GzipFile(fileobj=source) if is_compressed else source
    unpacked = io.BufferedReader(_Bounded(stream, deadline))
    try:
        with tarfile.open(fileobj=unpacked, mode="r|", tarinfo=_WholeFile) as members:
            return _first_config(members)
    except (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, ValueError) as error:
        raise ArchiveError(f"not a tar archive: {error}") from error
    except RecursionError as error:
        raise ArchiveError("not a tar archive: too many headers of one file") from error


def _first_config(members: tarfile.TarFile) -> str:
    for count, member in enumerate(members):
        members.members.clear()  # type: ignore[attr-defined]  # it keeps all; `stream` of Python 3.13
        if count >= MOST_MEMBERS:
            raise ArchiveError(f"the archive has more than {MOST_MEMBERS} members")
        if not member.isreg() or member.name.rpartition("/")[2] != GRAPH_CONFIG_KEY:
            continue
        if member.size > MOST_BYTES:
            raise ArchiveError(f"{member.name} is too large ({MOST_BYTES} bytes at most)")
        file = members.extractfile(member)
        if file is not None:
            return file.read(MOST_BYTES).decode()
    raise ArchiveError(f"the archive has no file {GRAPH_CONFIG_KEY}")


class _Bounded(io.RawIOBase):
    """A source that raises ArchiveError after `MOST_ARCHIVE_BYTES`, and after the deadline."""

    def __init__(self, source: io.BufferedIOBase, deadline: float) -> None:
        super().__init__()
        self._source, self._deadline, self._left = source, deadline, MOST_ARCHIVE_BYTES

    def readable(self) -> bool:
        """True, as `io.RawIOBase` requires."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer with one read of the source."""
        if time.monotonic() > self._deadline:
            raise ArchiveError(f"the archive has not come within {TOTAL_SECONDS:g} s")
        view = memoryview(buffer)
        piece = self._source.read(len(view))
        self._left -= len(piece)
        if self._left < 0:
            raise ArchiveError(f"the archive is too large ({MOST_ARCHIVE_BYTES} bytes at most)")
        view[: len(piece)] = piece
        return len(piece)


MOST_UNPACKED_BYTES: Final = 20 * 1024**3
"""Most bytes of an archive, and of its content."""
MOST_FILES: Final = 200_000
_MOST_OF_NAME: Final = 1000
"""Characters of a member's name: with the folder, a path stays below the 4,096 bytes of Linux."""
_MODE: Final = 0o755
"""The bits of a mode that are kept: no special bits, not writable for others."""
_READABLE, _OPEN = 0o600, 0o700
_OF_NAMES: Final = frozenset(
    (errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOTDIR)
)
"""Errors of the file system that names in an archive cause, so a retry fails too."""


class BadArchive(Exception):
    """The archive or the request is invalid; a retry does not help."""


def unpack(archive: BinaryIO, into: Path) -> None:
    """Unpack a tar into a new folder; the compression is detected by its first bytes.

    Raises:
        BadArchive: it is not a tar, it is too large, a member leads out of the folder, or names conflict.
        OSError: for example, the disk is full.
    """
    into.mkdir(parents=True)
    root = into.resolve()
    size, count = 0, 0
    try:
        with tarfile.open(fileobj=archive, mode="r|*", tarinfo=BoundedHeader, errorlevel=2) as tar:
            # The loop does what a filter of `tarfile` would: those need Python 3.11.4; Debian 12 has 3.11.2.
            # Python 3.14 has another default.
            tar.extraction_filter = lambda member, _: member
            for member in tar:
                size, count = size + abs(member.size), count + 1
                if size > MOST_UNPACKED_BYTES or count > MOST_FILES:
                    raise BadArchive(
                        f"the archive is too large ({MOST_UNPACKED_BYTES} bytes, {MOST_FILES} files at most)"
                    )
                _check(member, root)
                member.uid, member.gid, member.uname, member.gname = os.getuid(), os.getgid(), "", ""
                member.mode = member.mode & _MODE | (_OPEN if member.isdir() else _READABLE)
                tar.extract(member, root)
    except OSError as error:
        if error.errno in _OF_NAMES:
            raise BadArchive(f"the archive cannot be unpacked: {error.strerror}") from error
        raise
    except (ArchiveError, tarfile.TarError, EOFError, zlib.error, ValueError, KeyError) as error:
        raise BadArchive(f"the archive cannot be read: {error}") from error
    except RecursionError as error:
        raise BadArchive("the archive cannot be read: too many headers of one file") from error
    _check_links(root)


def _check(member: tarfile.TarInfo, root: Path) -> None:
    """Refuse a member that is, or leads, outside the folder, given what was unpacked before."""
    place = PurePosixPath(member.name)
    if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
        raise _refused(member, "neither a file nor a folder nor a link")
    if place.is_absolute() or ".." in place.parts or len(member.name) > _MOST_OF_NAME:
        raise _refused(member, "its name")
    above = (root / place).parent if place.parts else root  # "." is the folder itself
    if not (_stays_inside(above, root) and _stays_inside(root / place, root)):
        raise _refused(member, "through a link")  # `tarfile` opens a file of that name, if it is one
    if member.issym() or member.islnk():
        target = PurePosixPath(member.linkname)
        start = root if member.islnk() else above
        is_bad = target.is_absolute() or len(member.linkname) > _MOST_OF_NAME
        if member.islnk() and (root / target).is_symlink():
            # It would be the same link in another folder, where it leads elsewhere.
            raise _refused(member, "a hard link to a link")
        if is_bad or not _stays_inside(start / target, root):
            raise _refused(member, f"to {member.linkname[:100]}")


def _check_links(root: Path) -> None:
    """Refuse links that lead outside when all is unpacked: a later link may redirect an earlier one."""
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            if path.is_symlink() and not _stays_inside(path, root):
                raise BadArchive(
                    f"the archive leads out of its folder: {path.relative_to(root)}, through links"
                )


def _stays_inside(path: Path, root: Path) -> bool:
    """Whether a path is inside. Not with `Path.resolve`, which raises for a loop of links."""
    return Path(os.path.realpath(path)).is_relative_to(root)


def _refused(member: tarfile.TarInfo, why: str) -> BadArchive:
    return BadArchive(f"the archive leads out of its folder: {member.name[:100]}: {why}")


_MOST_OF_MESSAGE: Final = 4000
"""Bytes; the kubelet keeps 4,096 of a termination message."""
_MOST_OF_ERROR: Final = 500
"""Characters of an error; the message of a condition has room for 600."""
_MOST_OF_CONFIG: Final = 1024**2
_TERMINATION_LOG: Final = Path("/dev/termination-log")
_DOCKERFILE: Final = PurePosixPath("env/docker/Dockerfile")
_CHUNK: Final = 1024**2
_SILENCE_SECONDS: Final = 60.0
PERMANENT, TEMPORARY = 42, 1
"""Exit codes: errors that a retry does not fix, and all others."""


class NotFetched(Exception):
    """A server did not provide the archive; a retry may help."""


def fetch(into: Path, dockerfile: str = "") -> None:
    """Fetch and unpack the archive of a build. Builds of the older generation run this.

    Parameters
    ----------
    into
        Folder for the files of the archive; it must not exist.
    dockerfile
        Path of the Dockerfile in the archive (default: env/docker/Dockerfile, else Dockerfile).
    """
    try:
        source = from_json(os.environ["SOURCE"], Source)
        with asyncio.Runner() as runner:
            runner.run(_fetched(source, into))
        _require_dockerfile(into, dockerfile)
        _TERMINATION_LOG.write_text(graph_message(into), encoding="utf-8")
    except (BadArchive, msgspec.DecodeError, ValueError) as error:  # such as an invalid URL
        _end(error, PERMANENT)
    except (NotFetched, RegistryError, aiohttp.ClientError, OSError, TimeoutError) as error:
        _end(error, TEMPORARY)


def _end(error: Exception, code: int) -> NoReturn:
    text = cut(" ".join(str(error).split()), _MOST_OF_ERROR) or type(error).__name__
    sys.stderr.write(f"error: {text}\n")
    _TERMINATION_LOG.write_text(text, encoding="utf-8")
    sys.exit(code)


async def _fetched(source: Source, into: Path) -> None:
    if source.config_map is not None:
        _copied(Path(MOUNTED), into)
        return
    if source.pvc is not None:
        mounted = _mounted(source.pvc)
        if mounted.is_dir():
            _copied(mounted, into)
        else:
            with mounted.open("rb") as archive:
                unpack(archive, into)
        return
    archive_file = into.with_name("archive.tar")
    try:
        digest = await _downloaded(source, archive_file)
        expected = source.http.sha256 if source.http else None
        if expected and digest != expected:
            raise BadArchive(f"the archive has sha256 {digest}, expected {expected}")
        with archive_file.open("rb") as archive:
            unpack(archive, into)
    finally:
        archive_file.unlink(missing_ok=True)


def graph_message(folder: Path) -> str:
    """The configuration of the graph as a termination message; "" if the archive has none that fits.

    Raises: BadArchive if it is not YAML.
    """
    files = sorted(folder.rglob(GRAPH_CONFIG_KEY))
    file = next((file for file in files if _is_inside(file, folder)), None)
    if file is None or file.stat().st_size > _MOST_OF_CONFIG:
        return ""
    try:
        loaded = documents(GRAPH_CONFIG_KEY, file.read_text(encoding="utf-8"))
    except (ConfigError, UnicodeError) as error:
        raise BadArchive(f"{GRAPH_CONFIG_KEY}: {error}") from error
    except ConfigErrors as group:
        raise BadArchive("; ".join(map(str, group.exceptions[:3]))) from group
    if len(loaded) > 1:
        raise BadArchive(f"{GRAPH_CONFIG_KEY}: expected one document, found {len(loaded)}")
    document = loaded[0].value if loaded else None
    text = msgspec.json.encode(_reduced(document))
    if len(text) > _MOST_OF_MESSAGE:
        text = COMPRESSED.encode() + base64.b64encode(zlib.compress(text, 9))
    return text.decode() if len(text) <= _MOST_OF_MESSAGE else ""


_KEPT: Final = ("dynamo", "resources", "autoscaling", "workers")


def _reduced(document: object) -> object:
    """Keep what the operator reads of the configuration; a wrong shape stays, so that it is refused."""
    if not isinstance(document, dict):
        return document
    services = document.get("services")
    if isinstance(services, list):
        services = [_reduced_service(service) for service in services]
    both = {name: document.get(name) for name in ("service", "entry_service")}
    return {**both, "services": services}


def _reduced_service(service: object) -> object:
    if not isinstance(service, dict):
        return service
    config = service.get("config")
    if isinstance(config, dict):
        config = {name: config[name] for name in _KEPT if name in config}
    kept = {name: service[name] for name in ("name", "dependencies") if name in service}
    return {**kept, "config": config}


def _require_dockerfile(folder: Path, dockerfile: str) -> None:
    """Put the usual Dockerfile where the builder expects it. Raises: BadArchive if there is none."""
    path = PurePosixPath(dockerfile) if dockerfile else _DOCKERFILE
    if path.is_absolute() or ".." in path.parts:
        raise BadArchive(f"dockerfile {dockerfile}: outside of the archive")
    file, usual = folder / path, folder / "Dockerfile"
    if not dockerfile and not file.is_file() and _is_inside(usual, folder):
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(usual, file)
    if not file.is_file() or not _is_inside(file, folder):
        raise BadArchive(f"the archive has no {path}")


def _is_inside(file: Path, folder: Path) -> bool:
    return file.resolve().is_relative_to(folder.resolve()) and file.is_file()


def _mounted(source: PvcSource) -> Path:
    root = Path(MOUNTED)
    target = (root / (source.path or "").lstrip("/")).resolve()
    if not target.is_relative_to(root.resolve()) or not target.exists():
        raise BadArchive(f"pvc.path {source.path}: not found on the volume")
    return target


def _copied(source: Path, into: Path) -> None:
    """Copy a folder; links stay links, so no file from elsewhere is copied."""
    is_config = source == Path(MOUNTED) and (source / "..data").exists()
    hidden = shutil.ignore_patterns("..*")  # the kubelet's own folders of a ConfigMap
    shutil.copytree(source, into, symlinks=not is_config, ignore=hidden if is_config else None)


async def _downloaded(source: Source, to: Path) -> str:
    if source.s3 is not None:
        return await _written(_of_store(source.s3), to)
    if source.oci is not None:
        return await _of_registry(source.oci, to)
    if source.http is not None:
        return await _written(_of_url(source.http.url, _headers(source.http)), to)
    raise BadArchive("the source is empty")


async def _written(chunks: AsyncIterator[bytes], to: Path) -> str:
    digest, size = hashlib.sha256(), 0
    with to.open("wb") as file:
        async for chunk in chunks:
            size += len(chunk)
            if size > MOST_UNPACKED_BYTES:
                raise BadArchive(f"the archive is too large ({MOST_UNPACKED_BYTES} bytes at most)")
            digest.update(chunk)
            file.write(chunk)
    return digest.hexdigest()


def _headers(source: HttpSource) -> Mapping[str, str]:
    folder = Path(HEADERS)
    if source.header_secret_name:
        files = [file for file in sorted(folder.iterdir()) if file.is_file()]
        return {file.name: file.read_text(encoding="utf-8").strip() for file in files}
    if user := os.environ.get(STORE_USER):
        return {TOKEN_HEADER: f"{user}:{os.environ.get(TOKEN_KEY, '')}"}
    return {}


async def _of_url(url: str, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_SILENCE_SECONDS, sock_read=_SILENCE_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        for _ in range(5):
            async with session.get(url, headers=headers, allow_redirects=False) as answer:
                if answer.status in (301, 302, 303, 307, 308) and "Location" in answer.headers:
                    url, headers = redirected(url, answer.headers["Location"], headers)
                    continue
                if answer.status != 200:  # noqa: PLR2004
                    raise NotFetched(f"{_shown(url)}: status {answer.status}")
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    yield chunk
                return
    raise NotFetched(f"{_shown(url)}: too many redirects")


def redirected(url: str, location: str, headers: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """The target of a redirect and the headers for it: none for another host, which may be a store of blobs.

    Raises: BadArchive if it leads from TLS to none.
    """
    target = urljoin(url, location)
    before, after = urlsplit(url), urlsplit(target)
    if before.scheme == "https" and after.scheme != "https":
        raise BadArchive(f"{_shown(url)}: redirected to a URL without TLS")
    return target, headers if before.netloc == after.netloc else {}


def _shown(url: str) -> str:
    """The URL without user, password and query, which may be credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname}{parts.path}"


async def _of_registry(source: OciSource, to: Path) -> str:
    try:
        reference = parse_reference(source.ref)
    except ValueError as error:
        raise BadArchive(str(error)) from error
    config = Path(CREDENTIALS) / "config.json"
    login = login_of(config.read_bytes(), reference.host) if config.is_file() else None
    async with registry_session() as session:
        registry = Registry(session, reference, source.insecure, login, token_host=None)
        layers = (await registry.manifest()).get("layers") or []
        digest = str(layers[0].get("digest")) if len(layers) == 1 else ""
        if not re.fullmatch("sha256:[0-9a-f]{64}", digest):  # it becomes part of a URL
            raise BadArchive(f"{source.ref}: expected one layer with a sha256, found {len(layers)}")
        actual = await _written(_of_url(*registry.blob(digest)), to)
    if digest != f"sha256:{actual}":
        raise BadArchive(f"{source.ref}: the layer has sha256 {actual}, expected {digest}")
    return actual


async def _of_store(source: S3Source) -> AsyncIterator[bytes]:
    """Download an object of an S3-compatible store; credentials and region are in AWS variables."""
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    parts = urlsplit(source.uri)
    endpoint = source.endpoint or ("https://storage.googleapis.com" if parts.scheme == "gs" else None)
    options: dict[str, Any] = {"endpoint": endpoint} if endpoint else {}
    if "AWS_ACCESS_KEY_ID" not in os.environ:
        options["skip_signature"] = True
    is_plain = bool(endpoint and endpoint.startswith("http://"))
    store = S3Store(parts.netloc, client_options={"allow_http": is_plain}, **options)
    try:
        answer = await store.get_async(parts.path.lstrip("/"))
        async for chunk in answer.stream(min_chunk_size=_CHUNK):
            yield bytes(chunk)
    except (BaseError, OSError) as error:  # a missing object is a FileNotFoundError only
        text = " ".join(str(error).partition("Debug source:")[0].split())
        raise NotFetched(f"{source.uri}: {cut(text, _MOST_OF_ERROR)}") from error


ANSWER_SECONDS: Final = 30.0
"""Seconds that the store may be silent."""
TOTAL_SECONDS: Final = 90.0
"""Seconds for an archive: less than the limit of a reconcile."""
_AT_ONCE = 2


class StoreError(Exception):
    """The store has no such configuration, or the request failed; the message says which."""


# The operator connects to the store's address only: it refuses redirects, and neither objects nor
# responses influence the host. A thread reads the archive as a stream, without the event loop and
# the disk.
class ArchiveStore:
    """Reads the configuration of tags from one store, two at a time."""

    def __init__(self, settings: LegacySettings) -> None:
        self._settings = settings
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def graph_config(self, tag: str) -> str:
        """Read `bento.yaml` from the archive of a tag.

        Raises: StoreError if there is none, or the request failed.
        """
        async with self._places:
            return await asyncio.to_thread(self._read, tag)

    def _read(self, tag: str) -> str:
        try:
            url = store_url(tag, self._settings)
        except ValueError as error:
            raise StoreError(str(error)) from error
        parts, token = urlsplit(url), self._settings.api_token.reveal()
        headers = {TOKEN_HEADER: f"{store_user(self._settings)}:{token}"}
        is_plain = parts.scheme == "http"
        opened = http.client.HTTPConnection if is_plain else http.client.HTTPSConnection
        connection = opened(parts.hostname or "", parts.port or opened.default_port, timeout=ANSWER_SECONDS)
        try:
            with closing(connection):
                connection.request("GET", parts.path, headers=headers)
                with connection.getresponse() as answer:
                    if answer.status != http.client.OK:
                        raise StoreError(f"GET {url}: status {answer.status} {answer.reason}")
                    return config_in(answer, time.monotonic() + TOTAL_SECONDS)
        except (OSError, http.client.HTTPException, ArchiveError) as error:
            raise StoreError(f"GET {url}: {str(error) or type(error).__name__}") from error
