"""All tests run: pytest passes over folders of some names, such as `build`, without a word."""

from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_no_folder_of_tests_has_a_name_that_is_passed_over(request: pytest.FixtureRequest) -> None:
    skipped = request.config.getini("norecursedirs")
    files = [*ROOT.glob("packages/*/tests/**/test_*.py"), *ROOT.glob("tests/**/test_*.py")]
    folders = {part for file in files for part in file.relative_to(ROOT).parts[:-1]}
    assert [] == [each for each in sorted(folders) if any(fnmatch(each, name) for name in skipped)]
