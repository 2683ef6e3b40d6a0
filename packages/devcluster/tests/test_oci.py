import hashlib
import json
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from devcluster.images.oci import (
    Layer,
    Settings,
    TarEntry,
    folder_entries,
    relabelled,
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


def test_a_layer_has_the_entries_with_the_folders_above_them(files: Path, tmp_path: Path) -> None:
    with tarfile.open(of(files, tmp_path / "layer.tar", "/opt/deep").file) as archive:
        found = {member.name: member for member in archive}
    assert ["opt", "opt/deep", "opt/deep/bin", "opt/deep/bin/program"] == list(found)[:4]
    assert "/opt/bin/program" == found["opt/deep/link"].linkname
    assert 0o755 == found["opt/deep/bin/program"].mode
    assert {(0, 0, "", "")} == {(m.uid, m.gid, m.uname, m.gname) for m in found.values()}


def test_two_names_of_one_file_are_two_files(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a").write_text("same")
    os.link(folder / "a", folder / "b")
    with tarfile.open(of(folder, tmp_path / "layer.tar").file) as archive:
        assert [True, True] == [member.isreg() for member in archive if member.name[-1] in "ab"]


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


def test_how_a_container_starts_is_in_the_configuration(files: Path, tmp_path: Path) -> None:
    settings = Settings(
        entrypoint=["/opt/bin/program"],
        environment={"PATH": "/opt/bin", "EMPTY": ""},
        user="65532:65532",
        ports=["9443/tcp"],
    )
    file = tmp_path / "image.tar"
    write_image(file, "localhost/it:1", [], settings, architecture="arm64")
    _, _, config = image(file)
    assert {
        "Entrypoint": ["/opt/bin/program"],
        "Env": ["PATH=/opt/bin", "EMPTY="],
        "User": "65532:65532",
        "ExposedPorts": {"9443/tcp": {}},
    } == config["config"]
    assert "arm64" == config["architecture"]


def test_an_image_under_another_name_has_the_same_layers_and_its_own_labels(
    files: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.tar", tmp_path / "second.tar"
    layers = [
        write_layer(
            tmp_path / "layer.tar", [TarEntry(PurePosixPath("/a"), files / "bin" / "program")]
        )
    ]
    one = write_image(first, "localhost/it:1", layers, Settings(), architecture="amd64")
    two = relabelled(first, second, "localhost/it:2", {"version": "2"})
    described, manifest, config = image(second)
    assert one != two == described["digest"]
    assert "localhost/it:2" == described["annotations"]["io.containerd.image.name"]
    assert image(first)[1]["layers"] == manifest["layers"]
    assert {"version": "2"} == config["config"]["Labels"]
