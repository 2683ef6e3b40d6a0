"""Archives of unknown origin, for both readers: what is odd is refused, and nothing is written outside."""

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from dynamo_legacy import fetch as program
from dynamo_legacy.fetch import ArchiveError, BadArchive, config_in, unpack
from dynamo_legacy.render import MOST_BYTES

BLOCK = 512
END = bytes(2 * BLOCK)
MANY = 10_000_000


def entry(
    name: str,
    content: bytes = b"",
    type_: bytes = tarfile.REGTYPE,
    *,
    target: str = "",
    size: int | None = None,
    mode: int = 0o755,
) -> bytes:
    """A member: its header, and its content in whole blocks."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = type_, target, mode
    member.size = len(content) if size is None else size
    return member.tobuf(tarfile.GNU_FORMAT) + content + bytes(-len(content) % BLOCK)


def link(name: str, target: str, type_: bytes = tarfile.SYMTYPE) -> bytes:
    return entry(name, type_=type_, target=target)


def folder(name: str) -> bytes:
    return entry(name, type_=tarfile.DIRTYPE)


def extended(*records: tuple[str, str]) -> bytes:
    """An extended header. Each record begins with its own length."""
    body = b""
    for key, value in records:
        rest = f" {key}={value}\n".encode()
        length = len(rest)
        while len(f"{length}") + len(rest) != length:
            length = len(f"{length}") + len(rest)
        body += f"{length}".encode() + rest
    return entry("header", body, tarfile.XHDTYPE)


def archive(*entries: bytes) -> io.BytesIO:
    return io.BytesIO(b"".join(entries) + END)


CONFIG = entry("bento.yaml", b"service: a")
CONTENT = entry("src/x.py", b"x" * 100_000) + entry("./bento.yaml", b"service: a") + CONFIG + END
FILE = entry("src/a.py", b"pass\n")


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


NO_FILE = "has no file bento.yaml"
REFUSED = {
    "empty": (b"", "not a tar|no file"),
    "no tar": (b"<html>not found</html>" * 100, "not a tar"),
    "cut": (gzip.compress(CONTENT)[:60], "not a tar"),
    "no gzip": (b"\x1f\x8b" + b"x" * 600, "not a tar"),
    "zstd": (b"\x28\xb5\x2f\xfd" + bytes(600), "not a tar"),
    "a name with a zero byte": (extended(("path", "a\0b")) + entry("x"), NO_FILE),
    "a target with a zero byte": (extended(("linkpath", "a\0b")) + link("x", "y"), NO_FILE),
    "a path below a file": (entry("a") + entry("a/b"), NO_FILE),
    "a link in place of a folder": (folder("a") + link("a", "b"), NO_FILE),
    "a file in place of a folder": (folder("a") + entry("a"), NO_FILE),
    "a part of a name that is too long": (extended(("path", "a" * 300)) + entry("x"), NO_FILE),
    "a name that is much too long": (extended(("path", "a/" * 4000)) + entry("x"), NO_FILE),
    "a link to what does not exist": (link("a", "b", tarfile.LNKTYPE), NO_FILE),
    "a link to itself": (link("a", "a", tarfile.LNKTYPE), NO_FILE),
    "a size below zero": (entry("a", size=-5), "a header of -5 bytes"),
    "a size below zero in an extended header": (extended(("size", "-5")) + entry("x"), "no file|not a tar"),
    "a size that is not a number": (
        extended(("size", "many")) + entry("x", type_=tarfile.CHRTYPE),
        "no file|not a tar",
    ),
    "records that end nowhere": (
        entry("header", b"99999999 path=a\n", tarfile.XHDTYPE) + entry("x"),
        "no file|not a tar",
    ),
    "many headers of one member": (extended(("comment", "a")) * 3000 + entry("x"), "too many headers"),
    "many long names of one member": (
        entry("header", b"a\0", tarfile.GNUTYPE_LONGNAME) * 3000 + entry("x"),
        "too many headers",
    ),
    **{
        f"a large header of type {type_.decode()}": (
            entry("header", bytes(MANY), type_) + entry("x"),
            f"a header of {MANY} bytes",
        )
        for type_ in (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME)
    },
}


def refuse(read: Callable[[io.BytesIO], object], content: bytes, error: type[Exception], said: str) -> None:
    source = io.BytesIO(content)
    tracemalloc.start()
    try:
        with pytest.raises(error, match=said):
            read(source)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024**2
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", REFUSED)
def test_both_readers_refuse_it_without_filling_the_memory(tmp_path: Path, name: str) -> None:
    content, message = REFUSED[name]
    whole = content if name in ("empty", "cut") else content + END
    refuse(config_in, whole, ArchiveError, message)
    refuse(lambda file: unpack(file, tmp_path / "in"), whole, BadArchive, "the archive")
    assert ["in"] == [each.name for each in tmp_path.iterdir()]


SPARSE = {
    "GNU.sparse.major": "1",
    "GNU.sparse.minor": "0",
    "GNU.sparse.name": "bento.yaml",
    "GNU.sparse.realsize": "10",
}
ENTRIES = 500_000
WITHOUT_CONFIG = {
    "another file": (entry("a", b"b"), NO_FILE),
    "a link": (link("bento.yaml", "a"), NO_FILE),
    "too large": (entry("bento.yaml", b"#" * (MOST_BYTES + 1)), "bento.yaml is too large"),
    "no text": (entry("bento.yaml", b"\xff\xfe"), "not a tar"),
    "many headers": ((extended(("comment", "x" * 10_000)) + entry("x")) * 1000, NO_FILE),
    "the map of a sparse file": (
        extended(*SPARSE.items()) + entry("0", f"{ENTRIES}\n".encode() + b"0\n" * 2 * ENTRIES),
        "is a sparse file",
    ),
    "a sparse file as GNU writes it": (entry("bento.yaml", type_=tarfile.GNUTYPE_SPARSE), "is a sparse file"),
}


@pytest.mark.parametrize("name", WITHOUT_CONFIG)
def test_an_archive_without_a_configuration_fills_no_memory(name: str) -> None:
    content, message = WITHOUT_CONFIG[name]
    refuse(config_in, content + END, ArchiveError, message)


def test_too_many_bytes_and_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = archive(*(entry(f"{index}") for index in range(5)))
    bomb = io.BytesIO(gzip.compress(entry("a", bytes(5_000_000)) + CONFIG + END))
    assert len(bomb.getvalue()) < 10_000
    monkeypatch.setattr(program, "MOST_MEMBERS", 3)
    monkeypatch.setattr(program, "MOST_FILES", 3)
    with pytest.raises(ArchiveError, match="more than 3 members"):
        config_in(few)
    few.seek(0)
    with pytest.raises(BadArchive, match="too large"):
        unpack(few, tmp_path / "many")
    monkeypatch.setattr(program, "MOST_ARCHIVE_BYTES", 1_000_000)
    monkeypatch.setattr(program, "MOST_UNPACKED_BYTES", 1_000_000)
    with pytest.raises(ArchiveError, match="too large"):
        config_in(bomb)
    bomb.seek(0)
    with pytest.raises(BadArchive, match="too large"):
        unpack(bomb, tmp_path / "bomb")


def test_an_archive_that_is_late_is_refused() -> None:
    with pytest.raises(ArchiveError, match="has not come within"):
        config_in(io.BytesIO(CONTENT), deadline=0)


@pytest.mark.parametrize("compress", [lzma.compress, bz2.compress])
def test_what_is_cut_off_is_refused(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    whole = compress(entry("a") + END)
    with pytest.raises(BadArchive):
        unpack(io.BytesIO(whole[: len(whole) // 2]), tmp_path / "in")


@pytest.mark.parametrize(
    "member",
    [
        entry("../out"),
        entry("/etc/x"),
        entry("src/../a"),
        link("a", "/etc/passwd"),
        link("a", "../../out"),
        link("a", "../out", tarfile.LNKTYPE),
        link("null", "", tarfile.CHRTYPE),
    ],
)
def test_what_leads_out_of_the_folder_is_refused(tmp_path: Path, member: bytes) -> None:
    with pytest.raises(BadArchive, match="leads out of its folder"):
        unpack(archive(FILE, member), tmp_path / "in")
    assert ["in"] == [each.name for each in tmp_path.iterdir()]


def bent(target: str) -> bytes:
    """A link `a` that leads out since `b/c`, which its target names, has become a link itself."""
    return folder("b") + link("a", f"b/c/../../{target}") + link("b/c", "..")


def test_links_that_are_harmless_one_by_one_lead_nowhere(tmp_path: Path) -> None:
    with pytest.raises(BadArchive, match="a, through links"):
        unpack(archive(FILE, bent("")), tmp_path / "in")
    with pytest.raises(BadArchive, match="a/out: through a link"):
        unpack(archive(FILE, bent(""), entry("a/out")), tmp_path / "again")
    assert {"in", "again"} == {each.name for each in tmp_path.iterdir()}


@pytest.mark.parametrize("member", [entry("a"), folder("a"), link("h", "a", tarfile.LNKTYPE)])
def test_no_file_or_folder_is_written_through_a_link_of_its_own_name(tmp_path: Path, member: bytes) -> None:
    """`in/a` leads to `out` beside the folder that contains `in`."""
    outside = tmp_path / "out"
    outside.mkdir(mode=0o700)
    for target in ("out", "out/new"):
        inside = tmp_path / "folder" / target.replace("/", "-")
        with pytest.raises(BadArchive, match=r"through a link|to a"):
            unpack(archive(FILE, bent(target), member), inside)
    assert [] == list(outside.iterdir())
    assert 0o700 == stat.S_IMODE(outside.stat().st_mode)


def test_a_hard_link_to_a_link_changes_no_file_outside(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    victim.chmod(0o600)
    before = victim.stat()
    members = (folder("a"), link("a/link", "../victim"), link("h", "a/link", tarfile.LNKTYPE))
    with pytest.raises(BadArchive, match="a hard link to a link"):
        unpack(archive(*members), tmp_path / "in")
    after = victim.stat()
    assert (before.st_mode, before.st_mtime) == (after.st_mode, after.st_mtime)


def test_links_inside_of_the_folder_stay_and_modes_lose_special_bits(tmp_path: Path) -> None:
    links = (link("a", "src/a.py"), link("h", "src/a.py", tarfile.LNKTYPE), link("b", "c"), link("c", "b"))
    itself = (folder("."), folder("./src"), entry("./src/a.py", b"pass\n"))  # as `tar -C folder .` begins
    unpack(archive(*itself, *links, entry("tool", mode=0o6777)), tmp_path / "in")
    inside = tmp_path / "in"
    assert "src/a.py" == str((inside / "a").readlink())
    assert "pass\n" == (inside / "h").read_text()
    assert (inside / "b").is_symlink()  # a loop
    found = (inside / "tool").stat()
    assert (0o755, os.getuid()) == (stat.S_IMODE(found.st_mode), found.st_uid)


def test_the_size_of_a_sparse_file_is_that_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a file of 1 MiB, the archive has no byte."""
    records = {
        "GNU.sparse.major": "0",
        "GNU.sparse.minor": "1",
        "GNU.sparse.map": f"{1024**2},0",
        "GNU.sparse.size": str(1024**2),
    }
    file = archive(extended(*records.items()), entry("holes"))
    unpack(file, tmp_path / "in")
    assert 1024**2 == (tmp_path / "in" / "holes").stat().st_size
    file.seek(0)
    monkeypatch.setattr(program, "MOST_UNPACKED_BYTES", 1000)
    with pytest.raises(BadArchive, match="too large"):
        unpack(file, tmp_path / "again")
