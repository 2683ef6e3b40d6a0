"""Invalid command lines of `install`."""

from collections.abc import Callable


def test_a_namespace_is_the_name_of_one(usage_error: Callable[[str], str]) -> None:
    assert 'invalid namespace "UP" (expected a name' in usage_error("install --print -n UP")
