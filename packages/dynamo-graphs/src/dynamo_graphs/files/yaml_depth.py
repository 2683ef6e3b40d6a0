"""PyYAML's C reader with a limit of depth, for text from untrusted sources.

The reader recurses once for each level, in C: a text of some thousand brackets does not raise an error, it
ends the process.
"""

from typing import Any

import yaml

DEPTH_LIMIT = 100
"""Levels of lists and mappings. Objects of Kubernetes have less than thirty."""


def is_deep(value: object) -> bool:
    """Whether a value has more levels than text may have from which it could be read."""
    level = [value]
    for _ in range(DEPTH_LIMIT):
        inside = [child for child in level if isinstance(child, (dict, list))]
        level = [
            child
            for parent in inside
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True


class ShallowLoader(yaml.CSafeLoader):
    """PyYAML's safe reader, which raises `yaml.MarkedYAMLError` for what is nested too deeply."""

    _depth = 0

    # The reader calls these two around each value, before it reads what is inside.
    def descend_resolver(self, current_node: Any, current_index: object) -> None:  # noqa: ARG002
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            mark = current_node.start_mark if current_node is not None else None
            raise yaml.MarkedYAMLError(
                problem=f"nested deeper than {DEPTH_LIMIT} levels", problem_mark=mark
            )

    def ascend_resolver(self) -> None:
        self._depth -= 1
