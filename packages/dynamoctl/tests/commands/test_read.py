"""Invalid command lines of `get`, `status`, `tree` and `logs`."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("logs chat/", 'invalid target "chat/" (expected GRAPH or GRAPH/SERVICE, for example chat/Decode)'),
        ("logs /Decode", 'invalid target "/Decode" (expected GRAPH or GRAPH/SERVICE'),
        ("logs chat --tail -2", "invalid --tail -2 (expected a number of lines, or -1)"),
        ("logs chat -f --previous", "--previous and --follow exclude each other"),
        ("status a/b/c", 'invalid name "a/b/c" (expected NAME or KIND/NAME, for example dgd/chat)'),
        ("tree dcd/chat", 'unsupported kind "dcd" (expected dgd)'),
        ("get pods", 'unsupported kind "pods" (expected one of dgd, dcd, dgdsa, dm, dgdr)'),
        ("get -n ../x", 'invalid namespace "../x" (expected a name, for example prod)'),
    ],
)
def test_a_usage_error_has_its_message(line: str, message: str, usage_error: Callable[[str], str]) -> None:
    assert message in usage_error(line)
