"""What the kubelet does to a container before it runs: it expands `$(NAME)` in command and arguments.

It reads a name up to the first `)`. Unknown names stay as written, `$$` is one `$`, any other `$` is text.
Source: `third_party/forked/golang/expansion` of Kubernetes 1.36.
"""

import re
from collections.abc import Mapping

from kube_runtime.types.meta import Object

_REFERENCE = re.compile(r"\$(?:\$|\((?P<name>[^)]*)\))", re.DOTALL)


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Return the text as the process receives it."""

    def value(reference: re.Match[str]) -> str:
        name = reference["name"]
        return "$" if name is None else variables.get(name, reference[0])

    return _REFERENCE.sub(value, text)


def command_line(container: Object, variables: Mapping[str, str]) -> list[str]:
    """Return the program that the container runs, and its arguments."""
    words = (*container.get("command", ()), *container.get("args", ()))
    return [expanded(word, variables) for word in words]
