import hashlib
import json
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from kube_runtime.errors import ConfigError
from realnode.oci import (
    IgnoreRules,
    Layer,
    Settings,
    folder_entries,
    parse,
    write_image,
    write_layer,
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a program, a link to it and an empty folder."""
    folder = tmp_path / "files"
    (folder / "bin").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "bin" / "program").write_text("#!/bin/sh\n")
    (folder / "bin" / "program").chmod(0o755)
    (folder / "link").symlink_to("/opt/bin/program")
    return folder


def of(folder: Path, file: Path, at: str = "/opt") -> Layer:
    return write_layer(file, folder_entries(folder, PurePosixPath(at)))


def read(archive: tarfile.TarFile, name: str) -> Any:
    content = archive.extractfile(name)
    assert content is not None
    return json.load(content)


def blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def image(file: Path) -> tuple[Any, Any, Any]:
    """The description in the index, the manifest and the configuration of the only image."""
    with tarfile.open(file) as archive:
        [described] = read(archive, "index.json")["manifests"]
        manifest = read(archive, blob(described["digest"]))
        return described, manifest, read(archive, blob(manifest["config"]["digest"]))


def test_the_same_contents_make_the_same_bytes_whoever_owns_them_and_since_when(
    files: Path, tmp_path: Path
) -> None:
    first = of(files, tmp_path / "first.tar")
    for path in (files / "bin" / "program", files / "bin", files):
        os.utime(path, (1, 1))
    again = of(files, tmp_path / "again.tar")
    assert first.digest == again.digest
    (files / "bin" / "program").chmod(0o700)
    assert first.digest != of(files, tmp_path / "changed.tar").digest


def test_every_digest_and_size_of_an_image_is_true(files: Path, tmp_path: Path) -> None:
    layers = [of(files, tmp_path / "layer.tar")]
    file = tmp_path / "image.tar"
    digest = write_image(file, "localhost/it:1", layers, Settings(), architecture="amd64")
    described, manifest, config = image(file)
    assert digest == described["digest"]
    assert "localhost/it:1" == described["annotations"]["io.containerd.image.name"]
    assert [layer.digest for layer in layers] == config["rootfs"]["diff_ids"]
    with tarfile.open(file) as archive:
        for entry in (described, manifest["config"], *manifest["layers"]):
            content = archive.extractfile(blob(entry["digest"]))
            assert content is not None
            data = content.read()
            assert entry["size"] == len(data)
            assert entry["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"


OURS = Path(__file__).parents[2] / "Containerfile"


def test_our_own_file_is_understood_and_its_last_stage_only_copies() -> None:
    *before, last = parse(OURS.read_text(), {"BASE": "localhost/base:1"})
    assert {"localhost/base:1"} == {stage.base for stage in (*before, last)}
    assert "RUN" not in {instruction.keyword for instruction in last.instructions}
    assert "USER" in {entry.keyword for entry in last.instructions}


def test_an_argument_that_is_given_wins_over_its_default() -> None:
    text = "ARG BASE=one\nFROM ${BASE} AS x\nFROM $BASE"
    assert ["one", "one"] == [stage.base for stage in parse(text, {})]
    assert ["two", "two"] == [stage.base for stage in parse(text, {"BASE": "two"})]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no FROM"),
        ("RUN true", "RUN: must not come before FROM"),
        ("FROM a\nHEALTHCHECK NONE", "Containerfile:2: HEALTHCHECK: is not understood"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse(text, {})


def test_the_last_line_that_matches_decides_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("# all\n*\n!src\n**/__pycache__\n")
    ignored = IgnoreRules.of(tmp_path)
    assert [True, False, True, False] == [
        ignored.ignores(PurePosixPath(path))
        for path in ("docs/a.md", "src/a.py", "src/b/__pycache__/a.pyc", "src/b/a.py")
    ]
    assert not IgnoreRules.of(tmp_path / "none").ignores(PurePosixPath("a"))
