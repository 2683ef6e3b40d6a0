from pathlib import Path, PurePosixPath

import pytest

from devcluster.images.oci import Copy, IgnoreRules, Instruction, command, copy, pairs, parse, place
from kube_runtime.errors import ConfigError

OURS = Path(__file__).parents[3] / "Containerfile"


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
