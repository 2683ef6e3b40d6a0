"""Invalid command lines of `scale`."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("scale chat --replicas 1", 'invalid target "chat" (expected GRAPH/SERVICE, for example'),
        ("scale dgd/chat --replicas 1", 'invalid target "dgd/chat" (expected GRAPH/SERVICE'),
        ("scale a/b --replicas 1.5", 'from 0 to 2147483647, got "1.5"'),
    ],
)
def test_a_usage_error_has_its_message(line: str, message: str, usage_error: Callable[[str], str]) -> None:
    assert message in usage_error(line)
