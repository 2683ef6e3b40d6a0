"""Lines of container logs: cut at a limit, with their times, without what would rule a terminal. Pure."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from cyclopts import CycloptsError

from kube_runtime.commandline.errors import visible

LINE_BYTES = 64 * 1024
"""Most bytes of a line that are kept; the rest of it is dropped, so that a line cannot fill the memory."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_DURATION = re.compile(r"([0-9]+)([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_NANOSECONDS = 9
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line, and when it was written: RFC 3339, UTC, as the kubelet prints it; "" if it printed none."""

    time: str
    text: str

    @property
    def order(self) -> str:
        """What to compare times by: the kubelet leaves out zeros at the end of a fraction."""
        whole, _, fraction = self.time.removesuffix("Z").partition(".")
        return f"{whole}.{fraction.ljust(_NANOSECONDS, '0')}" if whole else ""


async def bounded_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The lines of a stream of chunks, each at most `LINE_BYTES` long; an unfinished last one counts."""
    begun = b""
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield (begun + end[:LINE_BYTES])[:LINE_BYTES]
            begun = b""
        begun = (begun + rest[:LINE_BYTES])[:LINE_BYTES]
    if begun:
        yield begun


def log_line(raw: bytes) -> LogLine:
    """A line that the kubelet wrote with its time, as text without colours and control characters."""
    text = raw.decode("utf-8", "replace").rstrip("\r")
    time, space, rest = text.partition(" ")
    if not _TIME.fullmatch(time):
        time, rest = "", text
    elif not space:
        rest = ""
    return LogLine(time, visible(_COLOUR.sub("", rest)))


def seconds(duration: str) -> int:
    """A duration such as `10m`, in seconds.

    Raises: CycloptsError.
    """
    found = _DURATION.fullmatch(duration)
    if found is None:
        raise CycloptsError(
            f"invalid duration {duration!r} (expected a number and s, m, h or d, for example 10m)"
        )
    return int(found[1]) * _SECONDS[found[2]]
