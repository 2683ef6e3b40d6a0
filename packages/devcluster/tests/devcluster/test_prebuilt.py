"""Programs that others have built: only with the right checksum, and never in the way of a build."""

import hashlib
import io
import os
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from devcluster import programs as prebuilt
from devcluster.programs import MIRROR, fetch
from devcluster.progress import Lines

ENVTEST = "/releases/envtest-linux.tar.gz"
KWOK = "/releases/kwok"
PROGRAMS = ("etcd", "kubectl", "kwok")


def archive(**files: bytes) -> bytes:
    """A `.tar.gz` as envtest has it."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"controller-tools/envtest/{name}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return target.getvalue()


@dataclass
class Mirror:
    """A web server. `cuts` are after how many bytes the next answers end."""

    files: dict[str, bytes]
    url: str = ""
    cuts: list[int] = field(default_factory=list[int])
    asked: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])


@pytest.fixture
def mirror(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Mirror]:
    """A mirror with both files, an empty cache, and its address in the environment."""
    programs = archive(etcd=os.urandom(50_000), kubectl=b"#!/bin/sh\n")
    served = Mirror({ENVTEST: programs, KWOK: b"kwok"})

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(b"")

        def do_GET(self) -> None:
            self._answer(served.files.get(self.path, b""))

        def _answer(self, content: bytes) -> None:
            part = self.headers.get("Range", "")
            served.asked.append((self.command, self.path, part))
            if self.path not in served.files:
                self.send_error(404)
                return
            first = int(part.removeprefix("bytes=").removesuffix("-")) if part else 0
            self.send_response(206 if part else 200)
            length = len(served.files[self.path]) - first
            self.send_header("Content-Length", str(length))
            self.end_headers()
            cut = served.cuts.pop(0) if content and served.cuts else length
            self.wfile.write(content[first:][:cut])

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # as the base has it
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(MIRROR, served.url)
    yield served
    server.shutdown()
    server.server_close()


def write_table(folder: Path, **content: bytes) -> Path:
    """Pins with the checksums of this content, for a machine of the tests."""
    known = {ENVTEST: ("etcd", "kubectl"), KWOK: ("kwok",)}
    contents = {ENVTEST: content["envtest"], KWOK: content["kwok"]}
    lines = list[str]()
    for path, programs in known.items():
        lines += [
            "[[linux-riscv64]]",
            f'url = "https://example.com{path}"',
            f'sha512 = "{hashlib.sha512(contents[path]).hexdigest()}"',
            f"programs = {list(programs)}",
        ]
    table = folder / "prebuilt.toml"
    table.write_text("\n".join(lines), encoding="utf-8")
    return table


@pytest.fixture
def table(mirror: Mirror, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pins of what the mirror has."""
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    return write_table(tmp_path, envtest=mirror.files[ENVTEST], kwok=mirror.files[KWOK])


def fetched(table: Path, programs: tuple[str, ...] = PROGRAMS) -> tuple[Path | None, str]:
    """The folder of programs, if any, and what the user reads."""
    stream = io.StringIO()
    return fetch(programs, Lines(stream), table), stream.getvalue()


def test_right_files_are_unpacked_and_fetched_once(mirror: Mirror, table: Path) -> None:
    folder, text = fetched(table)
    assert folder is not None
    assert set(PROGRAMS) == {entry.name for entry in folder.iterdir()}
    assert all(os.access(folder / name, os.X_OK) for name in PROGRAMS)
    assert b"kwok" == (folder / "kwok").read_bytes()
    asked = len(mirror.asked)
    assert (folder, "") == fetched(table)
    assert asked == len(mirror.asked)
    assert "downloading etcd, kubectl" in text


def test_a_wrong_file_is_never_used_and_not_kept(mirror: Mirror, table: Path) -> None:
    mirror.files[KWOK] = b"k0wk"
    folder, text = fetched(table)
    assert folder is None
    assert "has the SHA-512" in text
    assert "building from source" in text
    mirror.files[KWOK] = b"kwok"
    assert fetched(table)[0] is not None


@pytest.mark.parametrize("cuts", [1, 3])
def test_what_is_cut_continues_and_after_three_times_with_the_next_call(
    mirror: Mirror, table: Path, cuts: int
) -> None:
    mirror.cuts = [10_000] * cuts
    folder, text = fetched(table)
    assert (folder is None) == ("building from source" in text) == (cuts == 3)
    assert fetched(table)[0] is not None
    assert ("GET", ENVTEST, f"bytes={cuts}0000-") in mirror.asked


def test_an_archive_without_a_program_is_refused(mirror: Mirror, table: Path, tmp_path: Path) -> None:
    assert table.exists()
    mirror.files[ENVTEST] = archive(etcd=b"etcd")
    changed = write_table(tmp_path, envtest=mirror.files[ENVTEST], kwok=b"kwok")
    folder, text = fetched(changed)
    assert folder is None
    assert "has no kubectl" in text


def test_no_answer_costs_seconds(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv(MIRROR, f"http://127.0.0.1:{silent.getsockname()[1]}")
        started = time.monotonic()
        folder, text = fetched(table)
    assert folder is None
    assert time.monotonic() - started < 60
    assert "no prebuilt programs" in text


def test_nothing_is_asked_without_a_pin_for_every_program_or_if_it_is_off(
    mirror: Mirror, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (None, "") == fetched(table, (*PROGRAMS, "kube-scheduler"))
    monkeypatch.setenv(MIRROR, "off")
    assert (None, "") == fetched(table)
    assert [] == mirror.asked


def test_the_table_of_the_repository_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    for machine in ("x86_64", "aarch64"):
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert all(len(pin.sha512) == 128 for pin in prebuilt.pins())
