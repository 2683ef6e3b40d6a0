"""The notebooks as files: each is complete on its own, and shows what it prints and draws."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list[Any]:
    every = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in every if cell["cell_type"] == kind]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda it: it.stem)
def test_a_notebook_has_a_title_of_its_own_once_and_no_link_to_itself(notebook: Path) -> None:
    texts = ["".join(cell["source"]) for cell in cells(notebook, "markdown")]
    headings = [line.lstrip("# ") for text in texts for line in text.splitlines() if line.startswith("#")]
    assert texts[0].startswith("# ")
    assert len(headings) == len(set(headings))
    assert notebook.name not in "".join(texts)
    others = [path for path in NOTEBOOKS if path != notebook]
    assert headings[0] not in ["".join(cells(path, "markdown")[0]["source"])[2:] for path in others]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda it: it.stem)
def test_a_notebook_uses_what_it_imports_and_asserts_nothing(notebook: Path) -> None:
    code = "\n".join("".join(cell["source"]) for cell in cells(notebook, "code"))
    tree = list(ast.walk(ast.parse(code)))
    imported = {name.name for node in tree if isinstance(node, ast.ImportFrom) for name in node.names}
    assert imported <= {node.id for node in tree if isinstance(node, ast.Name)}
    assert not [node for node in tree if isinstance(node, ast.Assert)]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda it: it.stem)
def test_what_a_notebook_prints_is_stored_without_warnings(notebook: Path) -> None:
    for cell in cells(notebook, "code"):
        if "print(" in "".join(cell["source"]):
            assert cell["outputs"], "run `make notebooks STORE=1`"
        assert "stderr" not in [output.get("name") for output in cell["outputs"]]
