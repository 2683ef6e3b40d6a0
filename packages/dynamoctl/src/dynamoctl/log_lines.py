"""Lines of container logs with their times, of limited length and without control characters. Pure."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass

from kube_runtime.commandline.errors import visible

LINE_BYTES = 64 * 1024
"""Most bytes of a line that are kept, so that one line cannot fill the memory."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NANOSECONDS = 9
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line, and when it was written: RFC 3339, UTC, as the kubelet prints it; "" without a time."""

    time: str
    text: str

    @property
    def order(self) -> str:
        """The time in a form that sorts: the kubelet leaves out zeros at the end of a fraction."""
        whole, _, fraction = self.time.removesuffix("Z").partition(".")
        return f"{whole}.{fraction.ljust(_NANOSECONDS, '0')}" if whole else ""


async def bounded_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split chunks into lines of at most `LINE_BYTES`; the last one may lack its line end."""
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
    """Decode a line that the kubelet wrote with its time; colours and control characters are removed."""
    text = raw.decode("utf-8", "replace").rstrip("\r")
    time, space, rest = text.partition(" ")
    if not _TIME.fullmatch(time):
        time, rest = "", text
    elif not space:
        rest = ""
    return LogLine(time, visible(_COLOUR.sub("", rest)))


def visible_lines(text: str) -> str:
    """The text without control characters other than line ends."""
    return "\n".join(map(visible, text.split("\n")))
