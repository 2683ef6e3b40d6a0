"""Where a script starts its framework: found in linear time, and exactly where one pattern would find it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.backends import trtllm, vllm

TRTLLM = re.compile(r"(\S*/)?python[0-9.]*\s+[^|&;]*dynamo\.trtllm", re.ASCII)
VLLM = re.compile(r"python[0-9.]*\s[^|&;\n'\"]*dynamo\.vllm[^|&;\n'\"]*\Z", re.ASCII)
PIECES = (
    *("python", "python3.11", "3", ".", "/", "usr/bin/", "a", "é", "\u2003", "\x1c"),
    *(" ", "\n", "\t", "\v", "\f", "\r", "-m ", "dynamo.", "vllm", "trtllm", "dynamo.vllm"),
    *("dynamo.trtllm", "|", "&", ";", "'", '"', "python -m dynamo.vllm"),
)
SCRIPTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join)


@given(SCRIPTS)
def test_vllm_ends_a_script_where_the_pattern_says_so(script: str) -> None:
    assert (VLLM.search(script) is not None) == vllm._ends_simply(script)


@pytest.mark.parametrize(
    "script",
    [
        "/opt/a b/python3 -m dynamo.trtllm",
        "x|/usr/bin/python3 -m dynamo.trtllm",
        "python3 x.py; /bin/python -m dynamo.trtllm",
        "python\n-m dynamo.vllm --x 1",
        "cd /x\npython3\n-m dynamo.vllm",
    ],
)
def test_examples_are_found_as_by_the_patterns(script: str) -> None:
    found = TRTLLM.search(script)
    assert (found.start() if found else 0) == trtllm._start_of_framework(script)
    assert (VLLM.search(script) is not None) == vllm._ends_simply(script)
