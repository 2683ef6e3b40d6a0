"""Variables are named after what they hold: the names that could stand for anything are refused."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("packages/*/src", "bench", "tools")
VAGUE = frozenset({"each", "found", "known", "said", "told", "thing", "things"})
RENDERED = "packages/dynamo-operator/src/dynamo_operator/component/scripts/wait_for_leader.py"
"""Its text is in ConfigMaps of running graphs, so that a new name would write each of them again."""


def vague_names(text: str) -> Iterator[tuple[int, str]]:
    """The line and name of each variable and parameter of a module that could hold anything.

    Fields are left out: their class says what they are of.
    """
    tree = ast.parse(text)
    fields = {
        statement.target
        for class_ in ast.walk(tree)
        if isinstance(class_, ast.ClassDef)
        for statement in class_.body
        if isinstance(statement, ast.AnnAssign)
    }
    for node in ast.walk(tree):
        if node in fields:
            continue
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in VAGUE:
                yield node.lineno, name
            case ast.arg(arg=name) | ast.MatchAs(name=str(name)) if name in VAGUE:
                yield node.lineno, name


def test_variables_are_named_after_what_they_hold() -> None:
    paths = {path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py")}
    assert len(paths) > 300
    paths.remove(ROOT / RENDERED)
    assert [] == [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(paths)
        for line, name in vague_names(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(
    "text",
    [
        "names = [each.name for each in pods]",
        "def first(found): return found",
        "class Pods:\n    def __init__(self, known: int): pass",
        "match pods:\n    case [said]: pass",
    ],
)
def test_every_way_to_bind_a_name_is_seen(text: str) -> None:
    assert 1 == len(list(vague_names(text)))
