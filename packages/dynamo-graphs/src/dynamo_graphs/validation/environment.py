"""Environment variables: named, and with one source each."""

from collections.abc import Iterable, Iterator
from typing import Any

from dynamo_graphs.validation import Problem, ProblemKind


def environment_problems(entries: Iterable[Any], path: str) -> Iterator[Problem]:
    """What the API server would refuse in variables that have the right JSON types.

    A repeated name is valid here: in `envs` the later entry wins.
    """
    for index, entry in enumerate(entries):
        at = f"{path}[{index}]"
        name = entry.get("name")
        if not name:
            yield Problem(
                f"{at}.name", "missing name of an environment variable", ProblemKind.REQUIRED
            )
        elif "=" in name or not name.isascii() or not name.isprintable():
            yield Problem(
                f"{at}.name", f'invalid variable name "{name}" (expected ASCII without "=")'
            )
        source = entry.get("valueFrom")
        if source is not None and entry.get("value"):
            yield Problem(f"{at}.valueFrom", "value and valueFrom must not both be set")
        if source is not None and sum(each is not None for each in source.values()) != 1:
            yield Problem(f"{at}.valueFrom", "expected exactly one source")


def unique_environment_problems(entries: Iterable[Any], path: str) -> Iterator[Problem]:
    """The same for a container, whose variables are keyed by name: each may appear once."""
    entries = tuple(entries)
    yield from environment_problems(entries, path)
    seen = set[str]()
    for index, entry in enumerate(entries):
        name = entry.get("name")
        if name and name in seen:
            message = f'duplicate variable "{name}"'
            yield Problem(f"{path}[{index}].name", message, ProblemKind.DUPLICATE)
        if name:
            seen.add(name)
