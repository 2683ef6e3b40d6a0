"""Rewrite the golden files from the present rendering. Check `git diff` before you commit."""

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(["tests/golden", "--rewrite-golden", "--quiet"]))
