"""Invalid command lines, each with the message that names what was expected."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "new UP --model Qwen/Qwen3-32B",
            'invalid name "UP" (expected lower-case letters, digits, - and ., for example chat)',
        ),
        ("new x --model Qwen/Qwen3-32B --replicas -1", '"-1" for --replicas'),
        ("new Chat_1 --model Qwen/Qwen3-32B", 'invalid name "Chat_1" (expected lower-case letters, digits'),
        ("status Chat_1", "of lower-case letters, digits, - and ., for example dgd/chat)"),
        ("explain services.nope", 'unknown field "nope" of spec.services.<name> (fields:'),
        ("logs chat/", 'invalid target "chat/" (expected GRAPH or GRAPH/SERVICE, for example chat/Decode)'),
        ("logs /Decode", 'invalid target "/Decode" (expected GRAPH or GRAPH/SERVICE'),
        ("logs chat --tail -2", "invalid --tail -2 (expected a number of lines, or -1)"),
        ("logs chat -f --previous", "--previous and --follow exclude each other"),
        ("status a/b/c", 'invalid name "a/b/c" (expected NAME or KIND/NAME of lower-case letters, digits'),
        ("suspend dcd/chat", 'unsupported kind "dcd" (expected dgd)'),
        ("get pods", "pods are no objects of Dynamo (expected `kubectl get pods`, or `dynamoctl tree NAME`)"),
        ("get dgd,pod", 'unsupported kind "pod" (expected one of dgd, dcd, dgdsa, dm, dgdr)'),
        (
            "get -n ../x",
            'invalid namespace "../x" (expected lower-case letters, digits, - and ., for example prod)',
        ),
        (f"top --interval {'9' * 5000}s", "(expected a number and s, m, h or d, for example 10m)"),
        ("top --interval 0s", 'invalid interval "0s" (expected 1s to 1h, for example 5s)'),
        ("port-forward chat --port 65536", '"65536" for --port'),
        ("port-forward chat --address=", "expected an address, for example 127.0.0.1"),
        ("chat chat hi --max-tokens 0", '"0" for --max-tokens'),
        ("curl chat / -X P\u00dcT", "expected letters, for example PUT"),
        ("scale chat --replicas 1", 'invalid target "chat" (expected GRAPH/SERVICE, for example'),
        ("scale dgd/chat --replicas 1", 'invalid target "dgd/chat" (expected GRAPH/SERVICE'),
        (
            "scale a/b --replicas 1.5",
            'invalid value "1.5" for --replicas (expected a whole number from 0 to 2147483647)',
        ),
        ("install --print -n UP", 'invalid namespace "UP" (expected a name'),
        ("apply --filename=", "missing file: expected FILE or --filename FILE"),
    ],
)
def test_a_usage_error_has_its_message(line: str, message: str, usage_error: Callable[[str], str]) -> None:
    assert message in usage_error(line)
