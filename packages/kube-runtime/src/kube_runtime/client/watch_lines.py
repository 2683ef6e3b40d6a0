"""The lines of a watch: one event each, its object still JSON text."""

import re
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Literal

import msgspec
from msgspec import structs

from kube_runtime.client.transport import MOST_ANSWER_BYTES
from kube_runtime.errors import Unreachable
from kube_runtime.kind import Kind
from kube_runtime.types.meta import Struct


class WatchLine(Struct, frozen=True):
    """One event of a watch, its object still JSON text; of ERROR that is a `Status`."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: msgspec.Raw


_LINE = msgspec.json.Decoder(WatchLine)


_SPLIT_LINE = re.compile(rb'(\{"type":"[A-Z]*","object":)(.*)\}\s*', re.DOTALL)
"""A line as the API server writes it: nothing of it is text of a user before the object."""


def watch_line(line: bytes, kind: Kind) -> WatchLine:
    """Decode one line, its object still JSON text.

    Raises:
        Unreachable: the line is unreadable.
    """
    try:
        try:
            return _LINE.decode(line)
        except RecursionError:
            # The object is nested too deeply even to be skipped: an error of its reader, not of the stream.
            split = _SPLIT_LINE.fullmatch(line)
            if split is None:
                raise Unreachable(f"{kind}: the watch sent an unreadable line") from None
            start, nested = split.groups()
            return structs.replace(_LINE.decode(start + b"null}"), object=msgspec.Raw(nested))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Unreachable(f"{kind}: the watch sent an unreadable line: {error}") from error


async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split a stream of chunks into lines, without empty ones. No byte is searched twice.

    Raises:
        Unreachable: the stream ended within a line, or a line has more than `MOST_ANSWER_BYTES`.
    """
    begun: list[bytes] = []
    size = 0
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join((*begun, end))
            begun, size = [], 0
            if line.strip():
                yield line
        if rest:
            begun.append(rest)
            size += len(rest)
        if size > MOST_ANSWER_BYTES:
            raise Unreachable(f"the watch sent a line of more than {MOST_ANSWER_BYTES} bytes")
    if begun:
        raise Unreachable("the watch was cut in the middle of a line")
