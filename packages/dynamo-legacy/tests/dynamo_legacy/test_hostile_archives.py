"""Archives that are made to confuse: each ends as `BadArchive` and leaves nothing outside of its folder."""

import bz2
import io
import lzma
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from dynamo_legacy.fetch import BadArchive, unpack

BLOCK = 512
END = bytes(2 * BLOCK)


def member(name: str, type_: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    """The header of an empty member."""
    found = tarfile.TarInfo(name)
    found.type, found.linkname = type_, target
    return found.tobuf(tarfile.GNU_FORMAT)


def extended(body: bytes, type_: bytes = tarfile.XHDTYPE, size: int | None = None) -> bytes:
    """A header that continues in a block of its own, with its block."""
    found = tarfile.TarInfo("header")
    found.type, found.size = type_, len(body) if size is None else size
    return found.tobuf(tarfile.GNU_FORMAT) + body + bytes(-len(body) % BLOCK)


def record(key: str, value: str) -> bytes:
    """A record of an extended header, which begins with its own length."""
    rest = f" {key}={value}\n".encode()
    length = len(rest)
    while len(f"{length}") + len(rest) != length:
        length = len(f"{length}") + len(rest)
    return f"{length}".encode() + rest


def negative() -> bytes:
    """A header whose size is below zero, in base 256."""
    header = bytearray(member("a"))
    header[124:136] = b"\xff" * 12
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header)


HOSTILE = {
    "a name with a zero byte": extended(record("path", "a\0b")) + member("x"),
    "a target with a zero byte": extended(record("linkpath", "a\0b")) + member("x", tarfile.SYMTYPE, "y"),
    "a path below a file": member("a") + member("a/b"),
    "a link in place of a folder": member("a", tarfile.DIRTYPE) + member("a", tarfile.SYMTYPE, "b"),
    "a file in place of a folder": member("a", tarfile.DIRTYPE) + member("a"),
    "a part of a name that is too long": extended(record("path", "a" * 300)) + member("x"),
    "a name that is much too long": extended(record("path", "a/" * 4000)) + member("x"),
    "a link to what does not exist": member("a", tarfile.LNKTYPE, "b"),
    "a link to itself": member("a", tarfile.LNKTYPE, "a"),
    "a size below zero": negative(),
    "a size below zero in an extended header": extended(record("size", "-5")) + member("x"),
    "a size that is not a number": extended(record("size", "many")) + member("x", tarfile.CHRTYPE),
    "records that end nowhere": extended(b"99999999 path=a\n") + member("x"),
    "many headers of one member": extended(record("comment", "a")) * 3000 + member("x"),
    "many long names of one member": extended(b"a\0", tarfile.GNUTYPE_LONGNAME) * 3000 + member("x"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_each_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadArchive):
        unpack(io.BytesIO(HOSTILE[name] + END), tmp_path / "in")
    assert ["in"] == [each.name for each in tmp_path.iterdir()]


def test_a_hard_link_to_a_link_changes_no_file_outside(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o600)
    hard = tarfile.TarInfo("h")
    hard.type, hard.linkname, hard.mode, hard.mtime = tarfile.LNKTYPE, "a/link", 0o755, 99
    body = b"".join(
        (
            member("a", tarfile.DIRTYPE),
            member("a/link", tarfile.SYMTYPE, "../victim"),
            hard.tobuf(tarfile.GNU_FORMAT),
        )
    )
    before = victim.stat()
    with pytest.raises(BadArchive, match="a hard link to a link"):
        unpack(io.BytesIO(body + END), tmp_path / "in")
    after = victim.stat()
    assert (before.st_mode, before.st_mtime) == (after.st_mode, after.st_mtime)


@pytest.mark.parametrize("type_", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_does_not_fill_the_memory(tmp_path: Path, type_: bytes) -> None:
    body = lzma.compress(extended(bytes(64 * 1024**2), type_) + member("x") + END)
    tracemalloc.start()
    try:
        with pytest.raises(BadArchive, match="a header of 67108864 bytes"):
            unpack(io.BytesIO(body), tmp_path / "in")
        assert 16 * 1024**2 > tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compress", [lzma.compress, bz2.compress])
def test_what_is_cut_off_is_refused(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    whole = compress(member("a") + END)
    with pytest.raises(BadArchive):
        unpack(io.BytesIO(whole[: len(whole) // 2]), tmp_path / "in")
