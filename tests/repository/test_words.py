"""The check of words reports a phrase with its place and replacement; its baseline only falls."""

import runpy
from collections import Counter
from pathlib import Path

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[2] / "tools/words.py"))


def reported(path: str, text: str) -> list[str]:
    return [str(hit) for hit in TOOL["hits"](path, text, TOOL["read_phrases"]())]


def test_a_phrase_is_reported_with_line_and_replacement() -> None:
    assert reported("docs/page.md", "# Title\n\nThe operator goes\non to serve.\n") == [
        'docs/page.md:3: "goes on": write "continues", "keeps serving"'
    ]


@pytest.mark.parametrize(
    "line",
    [
        "# looked at again",
        'raise ValueError("the pod is looked at")',
        '"""Words.\n\nIt is looked at.\n"""',
        'f"{count} are looked at"',
    ],
)
def test_comments_docstrings_and_messages_are_read(line: str) -> None:
    assert len(reported("packages/one/src/one/two.py", line + "\n")) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("docs/page.md", "[decision 29](decisions/0029-operator-account.md)\n"),
        ("docs/page.md", "`spec.claims` and\n\n```sh\nkubectl get claims\n```\n"),
        (
            "docs/page.md",
            "There is no default, and it is no longer needed. Take it into account.\n",
        ),
        ("one.py", 'claim = names["claim"]\ntext = f"the PVC {claim.name}"\n'),
    ],
)
def test_names_and_plain_english_are_left_alone(path: str, text: str) -> None:
    assert reported(path, text) == []


def test_only_what_exceeds_the_baseline_fails() -> None:
    every = TOOL["hits"]("docs/page.md", "a wish\n", TOOL["read_phrases"]())
    assert TOOL["too_many"](every, Counter({("wish", "docs/page.md"): 1})) == []
    assert TOOL["too_many"](every, Counter({("wish", "code"): 1})) == every


def test_the_baseline_only_falls_and_goes_when_it_is_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "baseline.txt"
    names = TOOL["main"].__globals__
    monkeypatch.setitem(names, "BASELINE", path)
    monkeypatch.setitem(names, "files", lambda: ["page.md"])
    monkeypatch.setitem(names, "ROOT", tmp_path)
    path.write_text("told page.md 3\n", encoding="utf-8")
    (tmp_path / "page.md").write_text("told, and a wish\n", encoding="utf-8")
    assert TOOL["main"](["--tighten"]) == 0
    assert path.read_text(encoding="utf-8") == "told page.md 1\n"
    assert TOOL["main"]([]) == 1
    (tmp_path / "page.md").write_text("clean\n", encoding="utf-8")
    TOOL["main"](["--tighten"])
    assert not path.exists()
