"""Flags in a list of arguments, as `--flag value` or `--flag=value`."""

from collections.abc import Sequence


def value_of(args: Sequence[str], flag: str) -> str | None:
    """The value of a flag, empty if it has none. None means: the flag is not there."""
    for index, word in enumerate(args):
        name, equals, value = word.partition("=")
        if name != flag:
            continue
        if equals:
            return value
        following = args[index + 1] if index + 1 < len(args) else ""
        return "" if following.startswith("--") else following
    return None


def with_value(args: Sequence[str], flag: str, value: str) -> list[str]:
    """The arguments with this value of the flag, in its place or at the end."""
    kept = list(args)
    for index, word in enumerate(kept):
        name, equals, _ = word.partition("=")
        if name != flag:
            continue
        if equals:
            kept[index] = f"{flag}={value}"
        elif index + 1 < len(kept) and not kept[index + 1].startswith("--"):
            kept[index + 1] = value
        else:
            kept.insert(index + 1, value)
        return kept
    return [*kept, flag, value]
