"""The archive of a tag: a tar, compressed or not, of which the configuration is read and nothing else.

It comes from outside and may be anything. It is read once, as a stream, and written nowhere.
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
"""Of an archive, as it comes and unpacked."""
MOST_MEMBERS: Final = 100_000
_GZIP = b"\x1f\x8b"
_MOST_OF_HEADER: Final = 16 * 1024
"""Bytes of a header that continues in a block of its own, which `tarfile` reads into memory as a whole: two
paths of 4,096 bytes, the most that Linux has, and as much again. Before 3.11.10, Python takes a time that
grows with the square of it, without letting other threads run (CVE-2024-6232)."""
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
    """An archive that cannot be used; the message says why."""


class BoundedHeader(tarfile.TarInfo):
    """A header that is small enough to be read.

    Raises:
        ArchiveError: it is not, when `tarfile` reads it.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """The header in a block of the archive."""
        header = super().frombuf(buf, encoding, errors)
        if header.size < 0 or (header.type in _LONG_HEADERS and header.size > _MOST_OF_HEADER):
            raise ArchiveError(f"a header of {header.size} bytes")
        return header


class _WholeFile(BoundedHeader):
    """A header of no sparse file, whose map may be as large as the archive and is kept in memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        header = super().frombuf(buf, encoding, errors)
        if header.type == tarfile.GNUTYPE_SPARSE:
            raise ArchiveError(f"{header.name[:100]} is a sparse file")
        return header

    def _proc_gnusparse_10(self, *_: object) -> NoReturn:
        """Where `tarfile` would read the map of a sparse file in the format of POSIX."""
        raise ArchiveError(f"{self.name[:100]} is a sparse file")


class Readable(Protocol):
    """What an archive comes from."""

    def read(self, size: int, /) -> bytes:
        """Up to that many bytes; none at the end."""
        ...


def config_in(archive: Readable, check: Callable[[], None] = lambda: None) -> str:
    """The text of the first file `bento.yaml` of an archive. `check` is called for each piece that is read.

    Raises:
        ArchiveError: it is not such an archive, or too large.
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
    """A source that ends with an error when more than the allowed bytes have come from it."""

    def __init__(self, source: Readable, check: Callable[[], None]) -> None:
        super().__init__()
        self._source, self._check, self._left = source, check, MOST_ARCHIVE_BYTES

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fills the buffer as far as one read of the source does."""
        self._check()
        view = memoryview(buffer)
        piece = self._source.read(len(view))
        self._left -= len(piece)
        if self._left < 0:
            raise ArchiveError(f"the archive is too large ({MOST_ARCHIVE_BYTES} bytes at most)")
        view[: len(piece)] = piece
        return len(piece)
