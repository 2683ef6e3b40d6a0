"""Lines of container logs: cut at a limit, with their times, without what would rule a terminal. Pure."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from kube_runtime.commandline.errors import visible

LINE_BYTES = 64 * 1024
"""Most bytes of a line that are kept; the rest of it is dropped, so that a line cannot fill the memory."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
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


def visible_lines(text: str) -> str:
    """The text without control characters but line ends."""
    return "\n".join(map(visible, text.split("\n")))
