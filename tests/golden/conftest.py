"""How golden files are compared, and rewritten when asked."""

from dataclasses import dataclass
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-golden",
        action="store_true",
        help="write what is rendered instead of comparing; `git diff` shows the change",
    )


@dataclass(frozen=True, slots=True)
class Golden:
    """Files with the rendered objects of the last review."""

    rewrites: bool

    def check(self, path: Path, text: str) -> None:
        if self.rewrites:
            path.write_text(text, encoding="utf-8")
        assert path.read_text(encoding="utf-8") == text


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(rewrites=bool(request.config.getoption("--rewrite-golden")))
