"""Where a script starts its framework: found in linear time, and exactly where one pattern would find it."""

import re

from hypothesis import example, given
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
@example("/opt/a b/python3 -m dynamo.trtllm")
@example("x|/usr/bin/python3 -m dynamo.trtllm")
@example("python3 x.py; /bin/python -m dynamo.trtllm")
@example("python\n-m dynamo.vllm --x 1")
@example("cd /x\npython3\n-m dynamo.vllm")
def test_a_framework_is_found_where_its_pattern_finds_it(script: str) -> None:
    assert (VLLM.search(script) is not None) == vllm._ends_simply(script)
    found = TRTLLM.search(script)
    place = found.start() if found else 0
    expected = f"{script[:place]}trtllm-llmapi-launch {script[place:]}"
    assert expected == trtllm._command({"command": ["sh", "-c"], "args": [script]})
