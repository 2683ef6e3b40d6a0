"""Rewrites the golden files from what is rendered now. Look at `git diff` before you believe it."""

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(["tests/golden", "--rewrite-golden", "--quiet"]))
