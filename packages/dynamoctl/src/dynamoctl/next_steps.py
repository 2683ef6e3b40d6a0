"""What to type next: commands that a user can copy, with what each is for."""

import os
import sys
from pathlib import Path


def program() -> str:
    """What a user types for `dynamoctl` in the folder where the command ran."""
    own = Path(sys.executable).with_name("dynamoctl")
    # `uv run`, as in `make demo`, activates an environment that the user's shell does not have.
    is_active = "UV_RUN_RECURSION_DEPTH" not in os.environ
    if (
        is_active and own.parent == Path(os.environ.get("VIRTUAL_ENV", ""), "bin")
    ) or not own.exists():
        return "dynamoctl"
    return os.path.relpath(own) if own.is_relative_to(Path.cwd()) else str(own)


def print_next(*steps: tuple[str, str]) -> None:
    """Print commands, one per line, and what each is for."""
    width = max(len(command) for command, _ in steps)
    print("\nNext:")
    for command, purpose in steps:
        print(f"  {command:<{width}}  # {purpose}")
