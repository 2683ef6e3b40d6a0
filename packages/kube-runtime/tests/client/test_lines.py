"""Watch lines: however the bytes arrive, the lines are the same."""

from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.client.client import lines
from kube_runtime.errors import Unreachable

LINES = st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip()))


async def chunked(stream: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        yield stream[start:end]


@given(LINES, st.lists(st.integers(min_value=0)))
async def test_chunks_do_not_matter(expected: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in expected)
    assert expected == [line async for line in lines(chunked(stream, cuts))]


async def test_empty_lines_are_left_out() -> None:
    assert [b"a", b"b"] == [line async for line in lines(chunked(b"\na\n\n\nb\n", []))]


async def test_a_stream_that_ends_within_a_line_was_cut() -> None:
    found = lines(chunked(b"a\nb", []))
    assert b"a" == await anext(found)
    with pytest.raises(Unreachable, match="middle of a line"):
        await anext(found)
