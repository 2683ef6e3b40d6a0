"""Every program that a package of ours installs is there: its entry point names a function."""

from importlib.metadata import EntryPoint, entry_points

import pytest

OURS = ("dynamo", "dev", "kube")
PROGRAMS = [it for it in entry_points(group="console_scripts") if it.value.startswith(OURS)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda it: it.name)
def test_the_entry_point_of_a_program_is_a_function(program: EntryPoint) -> None:
    assert callable(program.load())
