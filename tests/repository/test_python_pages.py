"""The pages about Python: the tutorial's programs run, and the reference is of today's code."""

import re
from pathlib import Path

from tools.notebooks import FOLDER, notebooks
from tools.python_page import PAGE, page

TUTORIAL = Path(__file__).parents[2] / "docs/python.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_programs_without_a_cluster_run() -> None:
    offline, _, _ = TUTORIAL.read_text(encoding="utf-8").partition("## On a cluster")
    blocks = BLOCK.findall(offline)
    assert len(blocks) > 8
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102  our own page


def test_the_reference_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "make docs"


def test_every_public_name_and_method_is_documented() -> None:
    text = page()
    sections = re.split(r"^(?=#{3,4} )", text, flags=re.MULTILINE)[1:]
    bare = [each for each in sections if not BLOCK.sub("", each).partition("\n")[2].strip()]
    assert [] == bare
    assert 'role: Literal["", "prefill", "decode"] = "",' in text


def test_the_notebooks_are_those_of_the_page() -> None:
    found = {each.name: each.read_text(encoding="utf-8") for each in FOLDER.iterdir()}
    assert found == notebooks(), "make docs"
