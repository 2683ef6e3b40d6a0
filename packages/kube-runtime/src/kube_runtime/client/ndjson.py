"""The lines of a watch.

An object may have megabytes, so there is no limit of length, and no byte is searched twice.
"""

from collections.abc import AsyncGenerator, AsyncIterator

from kube_runtime.errors import Unreachable


async def lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """The lines of a stream that comes in chunks, without empty ones.

    Raises:
        Unreachable: the stream ended within a line.
    """
    begun: list[bytes] = []
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            line = b"".join((*begun, end))
            begun = []
            if line.strip():
                yield line
        if rest:
            begun.append(rest)
    if begun:
        raise Unreachable("the watch was cut in the middle of a line")
