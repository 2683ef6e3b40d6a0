"""Every program that a package installs is there: its entry point names a function."""

import tomllib
from importlib import import_module
from pathlib import Path

import pytest

PROGRAMS = sorted(
    (name, path)
    for file in Path(__file__).parents[2].glob("packages/*/pyproject.toml")
    for name, path in tomllib.loads(file.read_text(encoding="utf-8"))["project"].get("scripts", {}).items()
)


@pytest.mark.parametrize(("name", "path"), PROGRAMS)
def test_the_entry_point_of_a_program_is_a_function(name: str, path: str) -> None:
    module, _, function = path.partition(":")
    assert callable(getattr(import_module(module), function)), name
