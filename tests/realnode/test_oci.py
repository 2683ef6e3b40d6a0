import hashlib
import json
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from kube_runtime.errors import ConfigError
from realnode.oci import (
    Copy,
    IgnoreRules,
    Instruction,
    Layer,
    Settings,
    TarEntry,
    command,
    copy,
    folder_entries,
    pairs,
    parse,
    place,
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
    layers = [write_layer(tmp_path / "layer.tar", [TarEntry(PurePosixPath("/a"), files / "bin" / "program")])]
    one = write_image(first, "localhost/it:1", layers, Settings(), architecture="amd64")
    two = relabelled(first, second, "localhost/it:2", {"version": "2"})
    described, manifest, config = image(second)
    assert one != two == described["digest"]
    assert "localhost/it:2" == described["annotations"]["io.containerd.image.name"]
    assert image(first)[1]["layers"] == manifest["layers"]
    assert {"version": "2"} == config["config"]["Labels"]


OURS = Path(__file__).parents[2] / "Containerfile"


def instruction(text: str, word: str = "COPY") -> Instruction:
    return Instruction(word, text, 1)


def test_our_own_file_is_understood_and_its_last_stage_only_copies() -> None:
    *before, last = parse(OURS.read_text(), {"BASE": "localhost/base:1"})
    assert {"localhost/base:1"} == {stage.base for stage in (*before, last)}
    assert "RUN" not in {instruction.keyword for instruction in last.instructions}
    assert "USER" in {entry.keyword for entry in last.instructions}


def test_lines_go_on_behind_a_backslash_and_comments_do_not_count() -> None:
    [stage] = parse("# first\nFROM a AS b\nRUN one && \\\n  # between\n  two\n\nUSER 1\n", {})
    assert ("a", "b") == (stage.base, stage.name)
    assert [("RUN", "one && two"), ("USER", "1")] == [
        (instruction.keyword, instruction.text) for instruction in stage.instructions
    ]


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


def test_a_copy_has_sources_a_target_and_perhaps_a_stage() -> None:
    assert Copy("", ("a", "b"), "./") == copy(instruction("a b ./"), {})
    assert Copy("build", ("/opt/x",), "/opt") == copy(
        instruction("--from=build /opt/$NAME /opt"), {"NAME": "x"}
    )
    with pytest.raises(ConfigError, match="--chown is not understood"):
        copy(instruction("--chown=1 a b"), {})
    with pytest.raises(ConfigError, match="a source and a target"):
        copy(instruction("a"), {})


def test_variables_keep_quotes_together_and_know_those_before() -> None:
    found = pairs(instruction('PATH=/new:$PATH TEXT="two words"', "ENV"), {"PATH": "/old"})
    assert {"PATH": "/new:/old", "TEXT": "two words"} == found
    with pytest.raises(ConfigError, match="'PATH' has no value"):
        pairs(instruction("PATH /x", "ENV"), {})


def test_a_command_is_a_list() -> None:
    assert ("a", "b c") == command(instruction('["a", "b c"]', "CMD"))
    with pytest.raises(ConfigError, match="JSON list"):
        command(instruction("a b", "CMD"))


def test_places_are_relative_to_the_working_folder() -> None:
    assert PurePosixPath("/source/a") == place("a", "/source")
    assert PurePosixPath("/a") == place("/a", "/source")


def test_the_last_line_that_matches_decides_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / ".dockerignore").write_text("# all\n*\n!src\n**/__pycache__\n")
    ignored = IgnoreRules.of(tmp_path)
    assert [True, False, True, False] == [
        ignored.ignores(PurePosixPath(path))
        for path in ("docs/a.md", "src/a.py", "src/b/__pycache__/a.pyc", "src/b/a.py")
    ]
    assert not IgnoreRules.of(tmp_path / "none").ignores(PurePosixPath("a"))
