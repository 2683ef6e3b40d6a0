"""Invalid command lines of `chat`, `curl`, `port-forward` and `top`."""

from collections.abc import Callable

import pytest


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"top --interval {'9' * 5000}s", "(expected a number and s, m, h or d, for example 10m)"),
        ("top --interval 0s", 'invalid interval "0s" (expected 1s to 1h, for example 5s)'),
        ("port-forward chat --port 65536", '"65536" for --port'),
        ("port-forward chat --address=", "expected an address, for example 127.0.0.1"),
        ("chat chat hi --max-tokens 0", '"0" for --max-tokens'),
        ("curl chat / -X P\u00dcT", "expected letters, for example PUT"),
    ],
)
def test_a_usage_error_has_its_message(line: str, message: str, usage_error: Callable[[str], str]) -> None:
    assert message in usage_error(line)
