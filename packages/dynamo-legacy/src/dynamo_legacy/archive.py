"""Read the configuration from the archive of a tag: a tar, compressed or not.

The archive is untrusted. It is read once, as a stream, and never written to disk.
"""

import gzip
import io
import tarfile
import zlib
from collections.abc import Callable
from typing import Any, Final, NoReturn, Protocol, Self

from dynamo_legacy.graph_config import MOST_BYTES
from dynamo_legacy.names import GRAPH_CONFIG_KEY

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
    """A header of limited size.

    Raises:
        ArchiveError: it is too large, when `tarfile` reads it.
    """

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


class Readable(Protocol):
    """The source of an archive."""

    def read(self, size: int, /) -> bytes:
        """Read up to that many bytes; none at the end."""
        ...


def config_in(archive: Readable, check: Callable[[], None] = lambda: None) -> str:
    """Read the first `bento.yaml` of an archive. `check` is called for each chunk.

    Raises:
        ArchiveError: the archive is invalid or too large, or has no such file.
        Exception: what `check` or reading raises.
    """
    source = io.BufferedReader(_Bounded(archive, check))
    is_compressed = source.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
    stream = gzip.GzipFile(fileobj=source) if is_compressed else source
    unpacked = io.BufferedReader(_Bounded(stream, check))
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
    """A source that raises ArchiveError after `MOST_ARCHIVE_BYTES`."""

    def __init__(self, source: Readable, check: Callable[[], None]) -> None:
        super().__init__()
        self._source, self._check, self._left = source, check, MOST_ARCHIVE_BYTES

    def readable(self) -> bool:
        """True, as `io.RawIOBase` requires."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the buffer with one read of the source."""
        self._check()
        view = memoryview(buffer)
        piece = self._source.read(len(view))
        self._left -= len(piece)
        if self._left < 0:
            raise ArchiveError(f"the archive is too large ({MOST_ARCHIVE_BYTES} bytes at most)")
        view[: len(piece)] = piece
        return len(piece)
