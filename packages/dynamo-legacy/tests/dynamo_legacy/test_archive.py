"""Archives of unknown origin: the configuration is found, and whatever is odd is refused."""

import gzip
import io
import tarfile
import tracemalloc
from collections.abc import Sequence

import pytest

from dynamo_legacy import fetch as archive
from dynamo_legacy.fetch import ArchiveError, config_in
from dynamo_legacy.render import MOST_BYTES


def tar(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    """An archive with these members, in this order."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as file:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.type = kind
            member.size = len(content) if kind == tarfile.REGTYPE else 0
            file.addfile(member, io.BytesIO(content))
    return target.getvalue()


CONTENT = tar(("src/x.py", b"x" * 100_000), ("./bento.yaml", b"service: a"), ("bento.yaml", b"b"))


class Trickle(io.BufferedIOBase):
    """A source that gives a few bytes at a time, as a network does."""

    def __init__(self, content: bytes, sizes: Sequence[int]) -> None:
        self._content, self._sizes, self._turn = io.BytesIO(content), sizes, 0

    def read(self, size: int | None = -1, /) -> bytes:
        assert size is not None
        self._turn += 1
        return self._content.read(min(size, self._sizes[self._turn % len(self._sizes)]))


@pytest.mark.parametrize("content", [CONTENT, gzip.compress(CONTENT)])
@pytest.mark.parametrize("sizes", [(1, 2, 700), (10**9,)])
def test_the_first_configuration_is_read(content: bytes, sizes: Sequence[int]) -> None:
    assert config_in(Trickle(content, sizes)) == "service: a"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a tar|no file"),
        (b"<html>not found</html>" * 100, "not a tar"),
        (tar(("a", b"b")), "the archive has no file bento.yaml"),
        (tar(("bento.yaml", b""), kind=tarfile.SYMTYPE), "the archive has no file bento.yaml"),
        (tar(("bento.yaml", b"#" * (MOST_BYTES + 1))), "bento.yaml is too large"),
        (tar(("bento.yaml", b"\xff\xfe")), "not a tar"),
        (CONTENT[:60_000], "not a tar"),
        (gzip.compress(CONTENT)[:200], "not a tar"),
        (b"\x1f\x8b" + b"x" * 600, "not a tar"),
    ],
)
def test_anything_else_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(ArchiveError, match=message):
        config_in(io.BytesIO(content))


def test_what_unpacks_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_ARCHIVE_BYTES", 1_000_000)
    bomb = gzip.compress(tar(("a", bytes(5_000_000)), ("bento.yaml", b"a: b")))
    assert len(bomb) < 10_000
    with pytest.raises(ArchiveError, match="too large"):
        config_in(io.BytesIO(bomb))


def headed(header: dict[str, str], content: bytes = b"", *, times: int = 1) -> bytes:
    """An archive of members with these records in their extended header."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as file:
        for index in range(times):
            member = tarfile.TarInfo(f"{index}")
            member.pax_headers, member.size = header, len(content)
            file.addfile(member, io.BytesIO(content))
    return target.getvalue()


def block(type_: bytes, size: int = 0) -> bytes:
    """One header."""
    member = tarfile.TarInfo("bento.yaml")
    member.type, member.size = type_, size
    return member.tobuf(tarfile.GNU_FORMAT)


SPARSE = {
    "GNU.sparse.major": "1",
    "GNU.sparse.minor": "0",
    "GNU.sparse.name": "bento.yaml",
    "GNU.sparse.realsize": "10",
}
ENTRIES = 500_000
HUNGRY = {
    "a large header": (headed({"comment": "x" * 10_000_000}), "a header of 100"),
    "a large name": (block(tarfile.GNUTYPE_LONGNAME, 10_000_000) + bytes(10_000_000), "a header"),
    "many headers": (headed({"comment": "x" * 10_000}, times=1000), "has no file bento.yaml"),
    "the map of a sparse file": (
        headed(SPARSE, f"{ENTRIES}\n".encode() + b"0\n" * 2 * ENTRIES),
        "is a sparse file",
    ),
    "a sparse file as GNU writes it": (block(tarfile.GNUTYPE_SPARSE), "is a sparse file"),
    "headers of one member": (block(tarfile.XGLTYPE) * 3000, "too many headers of one file"),
    "a size below zero": (block(tarfile.REGTYPE, -5), "a header of -5 bytes"),
    "a size that is none": (headed({"size": "many"}), "has no file|not a tar"),
}


@pytest.mark.parametrize("name", HUNGRY)
def test_nothing_in_an_archive_fills_the_memory(name: str) -> None:
    content, message = HUNGRY[name]
    source = io.BytesIO(content + bytes(1024))
    tracemalloc.start()
    try:
        with pytest.raises(ArchiveError, match=message):
            config_in(source)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024**2
    finally:
        tracemalloc.stop()


def test_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 3)
    with pytest.raises(ArchiveError, match="more than 3 members"):
        config_in(io.BytesIO(tar(*((str(index), b"") for index in range(5)))))


def test_an_archive_that_is_late_is_refused() -> None:
    with pytest.raises(ArchiveError, match="has not come within"):
        config_in(io.BytesIO(CONTENT), deadline=0)
